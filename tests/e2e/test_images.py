"""Images of an app are pinned, copied into the install's registry, and run by their digest."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from exclave.base.secrets import Secret
from exclave.client.oci.client import Login, OciClient
from tests.support.apps import write_app
from tests.support.dev_server import DevServer, open_dev
from tests.support.images import (
    MadeImage,
    make_image,
    make_index,
    make_layer,
    make_referrer,
    push_image,
)
from tests.support.kubernetes import Cluster
from tests.support.kubernetes_tools import need_helm
from tests.support.registries import PASSWORD, USERNAME, serve_registry
from tests.support.relays import Relay, open_relay
from tests.support.tools import need_terraform

LOGIN = Login(USERNAME, Secret(PASSWORD))
SBOM = "application/spdx+json"
MANY = make_index(
    make_image(make_layer(1, 6_000_000), make_layer(2)),
    make_image(make_layer(1, 6_000_000), make_layer(3), platform="linux/arm64"),
)
ONE = make_image(make_layer(4, 50_000))
NOTE = make_referrer(MANY, b"{}", SBOM)
IMAGE = """name = "{name}"
type = "container_image"

[public]
image_url = "{url}"
tag = "1"
"""
WEB = """name = "web"
type = "helm_chart"
chart_name = "web"
namespace = "{namespace}"
storage_driver = "secret"

[public_repo]
repo = "."
directory = "chart"

[values]
image = "{{{{ with .nuon.components.many.outputs.image }}}}{{{{ .repository }}}}:{{{{ .tag }}}}{{{{ end }}}}"
"""
API = """name = "api"
type = "kubernetes_manifest"
namespace = "{namespace}"
manifest = "../api.yaml"
"""
DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME}
spec:
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec: {containers: [{name: app, image: "IMAGE"}]}
"""
GONE = ("actions/greet.toml", "components/greeting.toml", "components/page.toml")


@dataclass(frozen=True)
class Place:
    """A control plane, the registries that images come from, and the one that they go to."""

    dev: DevServer
    public: str
    private: str
    customer: Relay


@pytest.fixture
def place(tmp_path: Path, cluster: Cluster) -> Iterator[Place]:
    need_terraform()
    options = ["--kubeconfig", str(cluster.kubeconfig)]
    for name, value in (("registry_username", USERNAME), ("registry_password", PASSWORD)):
        (tmp_path / name).write_text(value)
        options += ["--secret-file", f"{name}={tmp_path / name}"]
    more = {"TOOLS": str(need_helm().parent), "GIT_ALLOW_PRIVATE": "true"}
    with (
        serve_registry(tmp_path / "public") as public,
        serve_registry(tmp_path / "private", login=True) as private,
        serve_registry(tmp_path / "customer", login=True) as customer,
        open_relay(customer) as relay,
    ):
        write_credentials(tmp_path, private)
        asyncio.run(push_sources(public, private, tmp_path))
        options += ["--registry", f"{relay.url}/acme"]
        with open_dev(tmp_path, *options, **more) as dev:
            yield Place(dev, public, private, relay)


def write_credentials(folder: Path, url: str) -> None:
    """Give the build runner the login of the private registry."""
    (folder / ".exclave").mkdir(mode=0o700)
    data = folder / ".exclave" / "runners" / "build"
    data.mkdir(parents=True, mode=0o700)
    file = data / "source-credentials.json"
    entry = {"prefix": url, "username": USERNAME, "password": PASSWORD}
    file.write_text(json.dumps({"credentials": [entry]}))
    file.chmod(0o600)


async def push_sources(public: str, private: str, folder: Path) -> None:
    async with OciClient(public) as client:
        await push_image(client.open_repository("vendor/many"), MANY, folder, "1")
        await push_image(client.open_repository("vendor/many"), NOTE, folder)
    async with OciClient(private, login=LOGIN) as client:
        await push_image(client.open_repository("vendor/one"), ONE, folder, "1")


def write_images_app(place: Place, namespace: str) -> Path:
    public, private = (url.removeprefix("http://") for url in (place.public, place.private))
    one = "{{ .nuon.components.one.outputs.image.ref }}"
    files = {
        "components/many.toml": IMAGE.format(name="many", url=f"{public}/vendor/many"),
        "components/one.toml": IMAGE.format(name="one", url=f"{private}/vendor/one"),
        "components/web.toml": WEB.format(namespace=namespace),
        "components/api.toml": API.format(namespace=namespace),
        "api.yaml": DEPLOYMENT.replace("NAME", "api").replace("IMAGE", one),
        "chart/Chart.yaml": "apiVersion: v2\nname: web\nversion: 0.1.0\n",
        "chart/values.yaml": "image: none\n",
        "chart/templates/web.yaml": DEPLOYMENT.replace("NAME", "web").replace(
            "IMAGE", "{{ .Values.image }}"
        ),
        **dict.fromkeys(GONE),
    }
    return write_app(place.dev.folder, "shop", files)


def list_pod_images(cluster: Cluster, namespace: str, app: str) -> set[str]:
    """Return the images of the pods that run, as the nodes were told to pull them."""
    path = f"/api/v1/namespaces/{namespace}/pods?labelSelector=app%3D{app}"
    pods = cluster.request("GET", path)["items"]
    return {pod["spec"]["containers"][0]["image"] for pod in pods}  # type: ignore[union-attr,index,call-overload,misc]


async def expect_copies(url: str) -> None:
    """The registry of the install has both images, all platforms, and what refers to them."""
    async with OciClient(f"{url}/acme", login=LOGIN) as client:
        many, one = client.open_repository("many"), client.open_repository("one")
        assert (await many.fetch_manifest(tag_of(MANY))).data == MANY.data
        for child in MANY.children:
            assert (await many.fetch_manifest(child.digest)).data == child.data
        notes = [note.digest for note in await many.list_referrers(MANY.digest)]
        assert NOTE.digest in notes
        assert (await one.fetch_manifest(tag_of(ONE))).data == ONE.data


def tag_of(image: MadeImage) -> str:
    return "x" + image.digest.removeprefix("sha256:")[:40]


def test_images_are_copied_and_run_by_digest(
    place: Place, cluster: Cluster, namespace: str
) -> None:
    dev = place.dev
    app = write_images_app(place, namespace)
    dev.run("apps", "create", "shop")
    dev.run("apps", "sync", str(app), "--wait")

    dev.run("installs", "create", "shop", "--name", "acme", "--here", "--approve-all", "--wait")

    asyncio.run(expect_copies(place.customer.url))
    repository = place.customer.url.removeprefix("http://") + "/acme"
    assert list_pod_images(cluster, namespace, "web") == {
        f"{repository}/many:{tag_of(MANY)}@{MANY.digest}"
    }
    assert list_pod_images(cluster, namespace, "api") == {f"{repository}/one@{ONE.digest}"}

    # Again: nothing is missing, so no blob moves and no pod changes.
    place.customer.reset()
    dev.run("installs", "approve-all", "acme", "on", "--yes")
    dev.run("installs", "deploy", "acme", "--all", "--wait")
    assert place.customer.up < 20_000
    found = dev.run("logs", "search", "0 B of", "--install", "acme").stdout
    assert found.count(" 0 of ") == found.count(" there already") == 2

    # The customer's password is in no log.
    assert PASSWORD not in dev.log.read_text()
    assert dev.run("logs", "search", PASSWORD, "--install", "acme").stdout == ""
    assert dev.run("logs", "search", PASSWORD, "--build").stdout == ""

    dev.run("installs", "deprovision", "acme", "--wait", "--yes")
    asyncio.run(expect_no_tags(place.customer.url))


async def expect_no_tags(url: str) -> None:
    async with OciClient(f"{url}/acme", login=LOGIN) as client:
        for name, image in (("many", MANY), ("one", ONE)):
            assert not await client.open_repository(name).has_manifest(tag_of(image))
