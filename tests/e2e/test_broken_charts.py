"""Many ways to break a chart, and the one line that tells a user of the CLI what to do about each."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from exclave.base.json_values import JsonObject
from tests.e2e.broken_charts import BREAKAGES, CHART, Breakage, write_component
from tests.e2e.test_manifests import GONE
from tests.support.apps import write_app
from tests.support.dev_server import DevServer, open_dev
from tests.support.kubernetes import Cluster, open_namespace
from tests.support.kubernetes_tools import need_helm
from tests.support.tools import need_terraform

POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
HELMS = {"app.kubernetes.io/managed-by": "Helm"}
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"


@pytest.fixture
def dev(tmp_path: Path, cluster: Cluster) -> Iterator[DevServer]:
    need_terraform()
    options = ("--kubeconfig", str(cluster.kubeconfig))
    tools = {"TOOLS": str(need_helm().parent), "CAPACITY": "20"}
    with open_dev(tmp_path, *options, **tools) as site:
        yield site


def test_each_way_to_break_a_chart_is_told_in_one_line(
    dev: DevServer, cluster: Cluster, namespace: str
) -> None:
    with open_namespace(cluster) as small, open_namespace(cluster) as strict:
        set_traps(cluster, namespace, small, strict)
        places = {"quota": small, "security": strict}
        files = {
            f"components/{broken.way}.toml": write_component(
                broken.way, places.get(broken.way, namespace)
            )
            for broken in BREAKAGES
        }
        app = write_app(dev.folder, "shop", {**CHART, **files, **dict.fromkeys(GONE)})
        dev.run("apps", "create", "shop")
        dev.run("apps", "sync", str(app), "--wait")

        create = ("installs", "create", "shop", "--name", "acme", "--here", "--approve-all")
        told = dev.run(*create, "--wait", code=1).stderr.splitlines()
        remove_traps(cluster, namespace)

    wrong = [broken.way for broken in BREAKAGES if not is_told(broken, told)]
    assert wrong == [], "\n".join(told)
    steps = dev.ask("workflows", "get", "acme")["steps"]
    messages = [step["message"] for step in steps if step["state"] == "failed"]
    assert len(messages) == len(BREAKAGES)
    assert not any("\n" in message for message in messages)


def is_told(broken: Breakage, told: list[str]) -> bool:
    """Return whether the output has exactly one line about a breakage, with cause and hint."""
    start = f"Step `{broken.way}.{broken.step}` failed: {broken.reason}: "
    lines = [line.removeprefix(start) for line in told if line.startswith(start)]
    return len(lines) == 1 and broken.cause in lines[0] and broken.hint in lines[0]


def set_traps(cluster: Cluster, namespace: str, small: str, strict: str) -> None:
    """Put into the cluster what charts can meet there: rules, limits, things of others."""
    base = f"/api/v1/namespaces/{namespace}"
    cluster.request(
        "POST",
        f"/api/v1/namespaces/{small}/resourcequotas",
        {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "0"}}},
    )
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    path = f"/api/v1/namespaces/{strict}"
    live = cluster.request("GET", path)
    cluster.request("PUT", path, {**live, "metadata": {"name": strict, "labels": labels}})
    claim: JsonObject = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "fast",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    cluster.request(
        "POST", f"{base}/persistentvolumeclaims", {"metadata": {"name": "data"}, "spec": claim}
    )
    owner = {
        "meta.helm.sh/release-name": "billing",
        "meta.helm.sh/release-namespace": namespace,
    }
    theirs: JsonObject = {"name": "somebodys", "annotations": owner, "labels": HELMS}
    cluster.request("POST", f"{base}/configmaps", {"metadata": theirs})
    forbid_a_config_map(cluster, namespace)


def forbid_a_config_map(cluster: Cluster, namespace: str) -> None:
    """Let the API server refuse ConfigMaps of the name `forbidden` in one namespace."""
    rule: JsonObject = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["configmaps"],
    }
    matched: JsonObject = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "resourceRules": [rule],
    }
    said = {
        "expression": "object.metadata.name != 'forbidden'",
        "message": "ConfigMaps are named by the platform team",
    }
    metadata = {"name": f"forbid-{namespace}"}
    spec: JsonObject = {"failurePolicy": "Fail", "matchConstraints": matched, "validations": [said]}
    cluster.request("POST", POLICIES, {"metadata": metadata, "spec": spec})
    binding = {"policyName": f"forbid-{namespace}", "validationActions": ["Deny"]}
    cluster.request("POST", BINDINGS, {"metadata": metadata, "spec": binding})


def remove_traps(cluster: Cluster, namespace: str) -> None:
    """Remove what is in no namespace."""
    for kind in (BINDINGS, POLICIES):
        cluster.request("DELETE", f"{kind}/forbid-{namespace}")
