"""5,000 objects in one component: planned, applied, planned again, with little memory."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from exclave.runner.kube.api.objects import MAX_OBJECTS
from tests.faults.kubernetes_app import KubernetesSite
from tests.faults.site import make_site
from tests.support.kubernetes import Cluster
from tests.support.tools import need_terraform

MOST_MIB = 400


@pytest.fixture
def shop(tmp_path: Path, cluster: Cluster, namespace: str) -> Iterator[KubernetesSite]:
    need_terraform()
    site = make_site(tmp_path)
    shop = KubernetesSite(site, cluster=cluster, namespace=namespace)
    try:
        shop.begin({"manifests/site.yaml": write_objects(MAX_OBJECTS)})
        yield shop
    finally:
        site.end()


def write_objects(count: int) -> str:
    """Return as many small ConfigMaps."""
    return "\n---\n".join(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": f"c{number}"},
                "data": {"number": str(number)},
            }
        )
        for number in range(count)
    )


def test_five_thousand_objects_are_deployed_once_and_then_there_is_nothing_to_do(
    shop: KubernetesSite,
) -> None:
    shop.deploy_all()
    made = sum(name.startswith("ConfigMap/c") for name in shop.list_objects())
    again = shop.await_end(shop.start_work("reprovision"))

    assert made == MAX_OBJECTS
    plan = next(step for step in again["steps"] if step["name"] == "site.plan")
    assert plan["outputs"]["noop"] is True, plan["outputs"]
    assert read_peak_mib(shop) < MOST_MIB


def read_peak_mib(shop: KubernetesSite) -> float:
    """Return the most memory that the runner has used."""
    assert shop.site.runner is not None
    assert shop.site.runner.running is not None
    status = Path(f"/proc/{shop.site.runner.running.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024
