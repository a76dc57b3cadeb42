"""30 components of four types: deployed in order and in parallel, changed one by one, removed."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from exclave.base.json_values import list_or_empty, object_or_empty, text_or_empty
from tests.e2e.mixed_app import COUNT, LAST, MODULES, list_files, list_needs
from tests.support.apps import edit
from tests.support.dev_server import DevServer, open_dev
from tests.support.kubernetes import Cluster
from tests.support.kubernetes_tools import need_helm
from tests.support.tools import need_terraform

KINDS = {
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "Job": "/apis/batch/v1/namespaces/{}/jobs",
    "Secret": "/api/v1/namespaces/{}/secrets",
}


@pytest.fixture
def dev(tmp_path: Path, cluster: Cluster) -> Iterator[DevServer]:
    need_terraform()
    options = ("--kubeconfig", str(cluster.kubeconfig))
    with open_dev(tmp_path, *options, TOOLS=str(need_helm().parent)) as site:
        yield site


def list_versions(cluster: Cluster, namespace: str) -> dict[str, str]:
    """Return the version of every object of a namespace, by kind and name."""
    versions: dict[str, str] = {}
    for kind, path in KINDS.items():
        listed = cluster.request("GET", path.format(namespace))
        for item in map(object_or_empty, list_or_empty(listed["items"])):
            metadata = object_or_empty(item["metadata"])
            name = text_or_empty(metadata["name"])
            versions[f"{kind}/{name}"] = text_or_empty(metadata["resourceVersion"])
    versions.pop("ConfigMap/kube-root-ca.crt", None)
    return versions


def test_thirty_components_live_from_provision_to_deprovision(
    dev: DevServer, cluster: Cluster, namespace: str
) -> None:
    write_files(dev.folder / "mixed", list_files(namespace))
    place = f"{namespace}-acme"
    dev.run("apps", "create", "mixed")
    dev.run("apps", "sync", "mixed", "--wait")

    dev.run("installs", "create", "mixed", "--name", "acme", "--here", "--approve-all", "--wait")
    expect_order(dev.ask("workflows", "get", "acme")["steps"])
    made = list_versions(cluster, place)
    assert len([name for name in made if "sh.helm.release" not in name]) == COUNT - MODULES
    assert read_size(cluster, place, "conf5") == "2"

    change_one(dev, cluster, place)
    drift_one(dev, cluster, place)
    upgrade_and_return(dev, cluster, place)

    dev.run("installs", "teardown", "acme", LAST, "--yes", "--wait")
    assert not cluster.exists(f"{KINDS['Deployment'].format(place)}/mixed-{LAST}")
    dev.run("installs", "deprovision", "acme", "--yes", "--wait")
    assert list_versions(cluster, place) == {}


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def expect_order(steps: list[dict[str, Any]]) -> None:
    """What a component stands on was applied before it was planned; the rest ran side by side."""
    found = {step["name"]: step for step in steps}
    for name, needed in list_needs().items():
        assert read_time(found[f"{needed}.apply"]["finished_at"]) <= read_time(
            found[f"{name}.plan"]["started_at"]
        ), (name, needed)
    spans = [
        (read_time(step["started_at"]), read_time(step["finished_at"]))
        for step in steps
        if step["name"].endswith(".apply")
    ]
    assert len(spans) == COUNT
    assert max(sum(a <= start < b for a, b in spans) for start, _ in spans) > 1


def read_time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def read_size(cluster: Cluster, place: str, name: str) -> str:
    value = cluster.request("GET", f"{KINDS['ConfigMap'].format(place)}/{name}")
    return text_or_empty(object_or_empty(value["data"])["size"])


def read_note(cluster: Cluster, place: str, note: str) -> str:
    """Return an annotation of the pods of the last chart."""
    value = cluster.request("GET", f"{KINDS['Deployment'].format(place)}/mixed-{LAST}")
    template = object_or_empty(object_or_empty(value["spec"])["template"])
    notes = object_or_empty(object_or_empty(template["metadata"])["annotations"])
    return text_or_empty(notes[note])


def change_one(dev: DevServer, cluster: Cluster, place: str) -> None:
    """An input that one chart reads deploys that chart, and touches no other object."""
    before = list_versions(cluster, place)
    dev.run("installs", "inputs", "set", "acme", "greeting=bye", "--wait")

    assert dev.list_ran("acme", ".apply") == {LAST}
    assert read_note(cluster, place, "text") == "bye"
    after = list_versions(cluster, place)
    changed = {name for name in before if after.get(name) != before[name]}
    assert all(LAST in name for name in changed), changed


def drift_one(dev: DevServer, cluster: Cluster, place: str) -> None:
    """A hand edit of one object is the only thing that a scan of all components finds."""
    path = f"{KINDS['ConfigMap'].format(place)}/conf3"
    live = cluster.request("GET", path)
    cluster.request("PUT", path, {**live, "data": {"size": "100"}})

    dev.run("installs", "drift", "acme", "--wait")

    parts = dev.ask("installs", "get", "acme")["parts"]
    assert [p["part"] for p in parts if p["drift"] == "drifted"] == ["component:conf3"]
    dev.run("installs", "deploy", "acme", "conf3", "--wait")
    assert read_size(cluster, place, "conf3") == "4"


def upgrade_and_return(dev: DevServer, cluster: Cluster, place: str) -> None:
    """A new version of one chart deploys that chart; a rollback brings back what was there."""
    edit(dev.folder / "mixed", "last/templates/web.yaml", '"one"', '"two"')
    dev.run("apps", "sync", "mixed", "--wait")
    dev.run("installs", "upgrade", "acme", "--deploy", "--yes", "--wait")
    assert dev.list_ran("acme", ".apply") == {LAST}
    assert read_note(cluster, place, "version") == "two"

    dev.run("installs", "rollback", "acme", LAST, "--wait")
    assert (read_note(cluster, place, "version"), read_note(cluster, place, "text")) == (
        "one",
        "bye",
    )


def test_two_installs_of_one_app_do_not_touch_each_other(
    dev: DevServer, cluster: Cluster, namespace: str
) -> None:
    write_files(dev.folder / "mixed", keep_chain(list_files(namespace)))
    here, there = f"{namespace}-acme", f"{namespace}-zenith"
    dev.run("apps", "create", "mixed")
    dev.run("apps", "sync", "mixed", "--wait")
    for name in ("acme", "zenith"):
        dev.run("installs", "create", "mixed", "--name", name, "--here", "--approve-all")
    for name in ("acme", "zenith"):
        dev.run("workflows", "watch", name)
    before = list_versions(cluster, there)
    assert len(before) == len(list_versions(cluster, here)) == 3

    change_one(dev, cluster, here)
    dev.run("installs", "deprovision", "acme", "--yes", "--wait")

    assert list_versions(cluster, here) == {}
    assert list_versions(cluster, there) == before
    assert read_note(cluster, there, "text") == "hello"
    dev.run("installs", "drift", "zenith", "--wait")
    parts = dev.ask("installs", "get", "zenith")["parts"]
    assert {part["drift"] for part in parts} <= {"", "none", None}
    dev.run("installs", "deprovision", "zenith", "--yes", "--wait")
    assert list_versions(cluster, there) == {}


def keep_chain(files: Mapping[str, str]) -> dict[str, str]:
    """Return the files of an app that has only the last chart, and what it stands on."""
    needs = list_needs()
    kept = {LAST, needs[LAST], needs[needs[LAST]]}
    return {
        name: text
        for name, text in files.items()
        if not name.startswith("components/") or Path(name).stem in kept
    }
