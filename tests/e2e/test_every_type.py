"""An app with every type of component comes, keeps its secret to itself, and goes without a trace."""

import base64
import json
import os
import secrets as randomness
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

import pytest
import zstandard

from exclave.base.json_values import (
    Json,
    JsonObject,
    list_or_empty,
    object_or_empty,
    parse_object,
    text_or_empty,
)
from tests.e2e.every_type_app import write_every_type
from tests.faults.site import exclave, wait_until
from tests.support.buildah import need_buildah
from tests.support.dev_server import DevServer, open_dev
from tests.support.kubernetes import Cluster
from tests.support.kubernetes_demo import TAG, push_stand_in
from tests.support.kubernetes_tools import need_helm, need_kubectl
from tests.support.registries import PASSWORD, USERNAME, serve_registry
from tests.support.tools import need_terraform

INSTALL = "acme"
_FRAME = zstandard.FRAME_HEADER


@dataclass(frozen=True)
class Site:
    """A control plane, the cluster of its install, and a secret of the customer."""

    dev: DevServer
    cluster: Cluster
    namespace: str
    password: str

    @property
    def install(self) -> str:
        return str(self.dev.ask("installs", "get", INSTALL)["id"])

    def set_secret(self, name: str, value: str) -> None:
        folder = self.dev.stacks / self.install
        argv = [*exclave(), "stack", "secrets", "set", name, "--folder", str(folder)]
        done = subprocess.run(
            argv, input=value, env=self.dev.user_env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


@pytest.fixture
def site(tmp_path: Path, cluster: Cluster) -> Iterator[Site]:
    need_terraform()
    namespace = f"every-{randomness.token_hex(4)}"
    password = f'pa"ss\\wörd-{randomness.token_hex(8)}'
    tools = tmp_path / "tools"
    tools.mkdir()
    for program in (need_helm(), need_kubectl()):
        (tools / program.name).symlink_to(program)
    with (
        serve_registry(tmp_path / "vendor") as vendor,
        serve_registry(tmp_path / "customer", login=True) as registry,
        _find_buildah(),
        open_dev(
            tmp_path,
            "--kubeconfig",
            str(cluster.kubeconfig),
            "--registry",
            registry,
            TOOLS=str(tools),
            GIT_ALLOW_PRIVATE="true",
        ) as dev,
    ):
        push_stand_in(vendor, tmp_path)
        image = f"{vendor.removeprefix('http://')}/library/nginx"
        write_every_type(tmp_path / "every", namespace, image, TAG)
        yield Site(dev, cluster, namespace, password)


@contextmanager
def _find_buildah() -> Iterator[None]:
    path = os.environ["PATH"]
    os.environ["PATH"] = f"{need_buildah().parent}:{path}"
    try:
        yield
    finally:
        os.environ["PATH"] = path


def test_an_app_of_every_type_deploys_and_deprovisions_to_nothing(site: Site) -> None:
    provision(site)
    made = list_objects(site)
    expect_everything(site, made)
    expect_hidden(site)

    site.dev.run("installs", "deprovision", INSTALL, "--wait", "--yes")

    wait_until(lambda: not list(site.dev.stacks.iterdir()), "the Stack is gone")
    steps = site.dev.ask("workflows", "get", INSTALL)["steps"]
    removal = next(step for step in steps if step["name"] == "secrets-remove")
    for namespace in (site.namespace, f"{site.namespace}-tools"):
        assert f"Secret {namespace}/admin is removed" in removal["message"]
        assert f"the namespace `{namespace}` is removed" in removal["message"]
    assert list_objects(site) == set()
    assert find_files(site, _spell(site.password)) == []


def provision(site: Site) -> None:
    """Provision the app; what the customer has to give is given while the first gate waits."""
    site.dev.run("apps", "create", "every")
    site.dev.run("apps", "sync", "every", "--wait")
    site.dev.run("installs", "create", "every", "--name", INSTALL, "--here")
    site.dev.await_gate(INSTALL)
    site.set_secret("admin_password", site.password)
    site.set_secret("registry_username", USERNAME)
    site.set_secret("registry_password", PASSWORD)
    site.dev.run("installs", "approve-all", INSTALL, "on", "--yes")
    site.dev.run("workflows", "approve-all", INSTALL, "--yes")
    site.dev.run("workflows", "watch", INSTALL)


def expect_everything(site: Site, made: set[str]) -> None:
    """Every component is in the cluster, with the secret where it belongs."""
    names = {address.rpartition("/")[2] for address in made}
    assert {"web", "store", "admin", "data-store-0", f"{site.namespace}-reader"} <= names
    assert any(address.startswith(f"Job/{site.namespace}/once-") for address in made)
    assert any("/exclave-pull-web-" in address for address in made)
    for name in ("admin", "web", "store"):
        path = f"/api/v1/namespaces/{site.namespace}/secrets/{name}"
        data = object_or_empty(site.cluster.request("GET", path)["data"])
        assert base64.b64decode(str(data["password"])).decode() == site.password
    parts = site.dev.ask("installs", "get", INSTALL)["parts"]
    assert {part["state"] for part in parts} == {"active"}


def expect_hidden(site: Site) -> None:
    """The secret is in the customer's store and nowhere else, not even where a script prints it."""
    holders = find_files(site, _spell(site.password))
    assert holders == [site.dev.stacks / site.install / "secrets.json"]
    assert find_files(site, ["it is ***"])


def list_objects(site: Site) -> set[str]:
    """Return every object of the cluster, of any kind, that says that it has to do with the test.

    Other tests use the same cluster, so the rest is not compared.
    """
    objects: set[str] = set()
    for path, kind in _list_collections(site.cluster):
        for item in _list_entries(site.cluster, path, "items"):
            if site.namespace in json.dumps(item):
                metadata = object_or_empty(object_or_empty(item).get("metadata"))
                place = text_or_empty(metadata.get("namespace"))
                objects.add(f"{kind}/{place}/{text_or_empty(metadata.get('name'))}")
    return objects


def _list_collections(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Yield the path and the kind of every collection that can be listed, except of events."""
    groups = list_or_empty(cluster.request("GET", "/apis").get("groups"))
    versions = [
        text_or_empty(object_or_empty(object_or_empty(group)["preferredVersion"])["groupVersion"])
        for group in groups
    ]
    for prefix in ("/api/v1", *(f"/apis/{version}" for version in versions)):
        for entry in _list_entries(cluster, prefix, "resources"):
            resource: JsonObject = object_or_empty(entry)
            kind, name = text_or_empty(resource["kind"]), text_or_empty(resource["name"])
            if "list" in list_or_empty(resource["verbs"]) and kind != "Event":
                yield f"{prefix}/{name}", kind


def _list_entries(cluster: Cluster, path: str, key: str) -> Sequence[Json]:
    """Return a list of a reply; empty if another test has removed the kind or its group."""
    answer = cluster.api.get(path)
    if answer.status_code == HTTPStatus.NOT_FOUND:
        return []
    assert answer.is_success, answer.text
    return list_or_empty(parse_object(answer.content, path).get(key))


def find_files(site: Site, texts: Iterable[str]) -> list[Path]:
    """Return the files of control plane and runners that contain one of the texts."""
    wanted = [text.encode() for text in texts]
    files = [file for file in (site.dev.folder / ".exclave").rglob("*") if file.is_file()]
    return [file for file in [*files, site.dev.log] if any(text in _read(file) for text in wanted)]


def _spell(value: str) -> Iterator[str]:
    yield value
    yield base64.b64encode(value.encode()).decode()
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    yield base64.b64encode(f"{USERNAME}:{PASSWORD}".encode()).decode()


def _read(file: Path) -> bytes:
    """Return the content of a file; compressed logs as they were written."""
    try:
        data = file.read_bytes()
    except FileNotFoundError:  # a runner that works removes files
        return b""
    if _FRAME not in data:
        return data
    start = data.index(_FRAME)
    try:
        reader = zstandard.ZstdDecompressor().stream_reader(data[start:], read_across_frames=True)
        return data + reader.read()
    except zstandard.ZstdError:
        return data
