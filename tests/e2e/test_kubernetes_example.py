"""The example for Kubernetes from its directory to a running install and back, on a real API server."""

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.apps import edit
from tests.support.buildah import need_buildah
from tests.support.kubernetes import Cluster
from tests.support.kubernetes_demo import (
    EXAMPLE,
    INSTALL,
    NAMESPACE,
    KubernetesSite,
    deploy_example,
    open_site,
)

DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/guestbook"


@pytest.fixture
def site(tmp_path: Path, cluster: Cluster) -> Iterator[KubernetesSite]:
    need_buildah()
    with open_site(tmp_path, cluster) as opened:
        yield opened
    cluster.api.delete(f"/api/v1/namespaces/{NAMESPACE}")


def read(site: KubernetesSite, path: str) -> str:
    """Return a field of the example's Deployment."""
    return site.kubectl("get", "deployment", "guestbook", "-o", f"jsonpath={path}")


def test_the_example_lives_from_sync_to_deprovision(site: KubernetesSite) -> None:
    deploy_example(site)
    expect_deployed(site)
    change_an_input(site)
    find_drift(site)
    upgrade(site)
    explain_a_failure(site)
    deprovision(site)


def expect_deployed(site: KubernetesSite) -> None:
    """Everything that the app names is in the cluster: pods by digest, secret, content, check."""
    assert read(site, "{.status.readyReplicas}") == "2"
    expect_built_image(site, read(site, "{.spec.template.spec.containers[0].image}"))
    secret = "get", "secret", "guestbook-admin", "-o", "jsonpath={.data.password}"
    assert base64.b64decode(site.kubectl(*secret))
    page = "get", "configmap", "guestbook-content", "-o", "jsonpath={.data}"
    assert "Hello from your own cluster" in site.kubectl(*page)
    state = site.dev.ask("installs", "state", INSTALL)["document"]
    assert state["actions"]["workflows"]["check"]["outputs"]["ready"] == "2"


def expect_built_image(site: KubernetesSite, image: str) -> None:
    """The pods run the image that was built, from the registry of the install, by its digest."""
    builds = site.dev.ask("builds", "list", "--part", "component:image")["items"]
    repository, _, digest = image.partition("@")
    assert [build["digest"] for build in builds] == [digest]
    assert f"/{INSTALL}/image:x" in repository
    document = site.dev.ask("builds", "sbom", builds[0]["id"])
    assert document["packages"][0]["versionInfo"] == digest


def change_an_input(site: KubernetesSite) -> None:
    """An input that Terraform reads changes what Terraform gives to the chart, and nothing else."""
    site.dev.run("installs", "inputs", "set", INSTALL, "visitors=350", "--wait")
    assert site.dev.list_ran(INSTALL, ".apply") == {"sizing", "web"}
    assert read(site, "{.status.readyReplicas}") == "4"


def find_drift(site: KubernetesSite) -> None:
    """Nothing drifted until somebody edits an object by hand."""
    site.dev.run("installs", "drift", INSTALL, "--wait")
    assert list_drifted(site) == set()
    site.kubectl("scale", "deployment", "guestbook", "--replicas=1")
    site.kubectl(
        "label", "configmap", "guestbook-content", "app.kubernetes.io/managed-by=me", "--overwrite"
    )
    site.dev.run("installs", "drift", INSTALL, "--wait")
    assert list_drifted(site) == {"component:content"}
    site.dev.run("installs", "deploy", INSTALL, "--all", "--wait")
    site.dev.run("installs", "drift", INSTALL, "--wait")
    assert list_drifted(site) == set()


def list_drifted(site: KubernetesSite) -> set[str]:
    parts = site.dev.ask("installs", "get", INSTALL)["parts"]
    return {part["part"] for part in parts if part["drift"] == "drifted"}


def upgrade(site: KubernetesSite) -> None:
    """A new version of the chart reaches the install when it is asked to."""
    edit(site.dev.folder / EXAMPLE.name, "charts/web/values.yaml", "64Mi", "96Mi")
    chart = site.dev.folder / EXAMPLE.name / "charts" / "web" / "templates" / "deployment.yaml"
    chart.write_text(chart.read_text().replace("path: /\n", "path: /index.html\n"))
    site.dev.run("apps", "sync", EXAMPLE.name, "--wait")
    site.dev.run("installs", "upgrade", INSTALL, "--deploy", "--wait", "--yes")
    assert site.dev.list_ran(INSTALL, ".apply") == {"web"}
    probe = "{.spec.template.spec.containers[0].readinessProbe.httpGet.path}"
    assert read(site, probe) == "/index.html"


def explain_a_failure(site: KubernetesSite) -> None:
    """A rollout that fails says why in one line, and the next version repairs it."""
    app = site.dev.folder / EXAMPLE.name
    labels = "    metadata:\n      labels: *labels\n"
    broken = f"{labels}      annotations:\n        bed/fail: oom\n"
    edit(app, "charts/web/templates/deployment.yaml", labels, broken)
    site.dev.run("apps", "sync", EXAMPLE.name, "--wait")
    site.dev.run("installs", "upgrade", INSTALL, "--deploy", "--wait", "--yes", code=1)
    steps = site.dev.ask("workflows", "get", INSTALL)["steps"]
    failed = next(step for step in steps if step["name"] == "web.apply")
    assert failed["reason"] == "rollout_failed"
    assert "memory limit" in failed["message"]

    edit(app, "charts/web/templates/deployment.yaml", broken, labels)
    site.dev.run("apps", "sync", EXAMPLE.name, "--wait")
    site.dev.run("installs", "upgrade", INSTALL, "--deploy", "--wait", "--yes")
    assert read(site, "{.status.readyReplicas}") == "4"


def deprovision(site: KubernetesSite) -> None:
    """Down again: no workload, no policy, no record of a release, no copied secret is left."""
    site.dev.run("installs", "deprovision", INSTALL, "--wait", "--yes")
    assert site.kubectl("get", "all,networkpolicy", "-o", "name").split() == []
    assert site.kubectl("get", "secret", "-o", "name").split() == []
    assert site.dev.ask("installs", "get", INSTALL)["state"] == "deprovisioned"
