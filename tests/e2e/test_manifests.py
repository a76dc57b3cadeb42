"""`exclave dev` deploys two objects to a real cluster, changes them, finds drift, removes them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.site import wait_until
from tests.support.apps import edit, write_app
from tests.support.dev_server import DevServer, open_dev
from tests.support.kubernetes import Cluster
from tests.support.tools import need_terraform

COMPONENT = """name = "web"
type = "kubernetes_manifest"
namespace = "{namespace}"
manifest = "../manifests/web.yaml"
"""
MANIFEST = """apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {who: "{{ .nuon.inputs.inputs.who }}"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: "shop/web:1"}]}
"""
GONE = ("actions/greet.toml", "components/greeting.toml", "components/page.toml")


@pytest.fixture
def dev(tmp_path: Path, cluster: Cluster) -> Iterator[DevServer]:
    need_terraform()
    with open_dev(tmp_path, "--kubeconfig", str(cluster.kubeconfig)) as site:
        yield site


def deploy(dev: DevServer, *words: str) -> None:
    """Start a workflow, approve what it asks for by digest, and wait until it has succeeded."""
    dev.run(*words)
    _, digest = dev.await_gate("acme")
    dev.run("workflows", "approve", "acme", "--digest", digest)
    dev.run("workflows", "watch", "acme")


def find_drift(dev: DevServer) -> str:
    dev.run("installs", "drift", "acme", "--wait")
    parts = dev.ask("installs", "get", "acme")["parts"]
    return str(next(part["drift"] for part in parts if part["part"] == "component:web"))


def test_two_objects_live_from_sync_to_deprovision(
    dev: DevServer, cluster: Cluster, namespace: str
) -> None:
    settings = f"/api/v1/namespaces/{namespace}/configmaps/settings"
    web = f"/apis/apps/v1/namespaces/{namespace}/deployments/web"
    files = {
        "components/web.toml": COMPONENT.format(namespace=namespace),
        "manifests/web.yaml": MANIFEST,
        **dict.fromkeys(GONE),
    }
    app = write_app(dev.folder, "shop", files)
    dev.run("apps", "create", "shop")
    dev.run("apps", "sync", str(app), "--wait")

    # Provision: the plan shows both objects, and its digest is what is approved.
    dev.run("installs", "create", "shop", "--name", "acme", "--here")
    _, digest = dev.await_gate("acme")
    dev.run("workflows", "approve", "acme", "--digest", digest)
    wait_until(lambda: "web" in dev.await_gate("acme")[0], "the gate of the component is open")
    plan = dev.run("workflows", "plan", "acme", "web.plan").stdout
    assert f"+ ConfigMap/{namespace}/settings will be created" in plan
    assert f"+ apps/Deployment/{namespace}/web will be created" in plan
    assert not cluster.exists(settings)
    dev.run("workflows", "approve", "acme", "--digest", dev.await_gate("acme")[1])
    dev.run("workflows", "watch", "acme")
    assert cluster.request("GET", settings)["data"] == {"who": "world"}
    assert cluster.exists(web)

    # A second deploy has nothing to do; a scan finds a hand edit, and a deploy repairs it.
    dev.run("installs", "deploy", "acme", "web", "--wait")
    assert find_drift(dev) == "none"
    live = dict(cluster.request("GET", settings))
    cluster.request("PUT", settings, {**live, "data": {"who": "somebody"}})
    assert find_drift(dev) == "drifted"
    deploy(dev, "installs", "deploy", "acme", "web")
    assert cluster.request("GET", settings)["data"] == {"who": "world"}

    # An object that leaves the text is pruned.
    edit(app, "manifests/web.yaml", MANIFEST, MANIFEST.partition("---\n")[2])
    dev.run("apps", "sync", str(app), "--wait")
    deploy(dev, "installs", "upgrade", "acme", "--deploy", "--yes")
    assert not cluster.exists(settings)
    assert cluster.exists(web)

    # A teardown leaves nothing.
    deploy(dev, "installs", "teardown", "acme", "web", "--yes")
    assert not cluster.exists(web)
