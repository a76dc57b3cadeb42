"""Each step of a chart, a manifest and a job fails once and is cancelled once; then all succeed."""

import asyncio
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from tests.faults.kubernetes_app import MANIFEST, KubernetesSite, list_wanted
from tests.faults.site import make_site, wait_until
from tests.support.cluster_proxy import refuse, run_proxy
from tests.support.kubernetes import Cluster
from tests.support.tools import need_terraform

PARTS = ("web", "site", "task")
JOBS = [f"{part}.{step}" for part in PARTS for step in ("plan", "apply")]
STEPS = [f"{part}.{step}" for part in PARTS for step in ("plan", "approve", "apply")]
TASK = """name = "task"
type = "job"
namespace = "NAMESPACE"
image_url = "shop/tool"
tag = "1"
cmd = ["migrate"]
dependencies = ["site"]
"""
CHANGED = re.compile(r"/(?:configmaps/(web|site)|jobs/(task))-")


class Faults:
    """Refuses or holds the request by which a step asks about its object, or changes it."""

    def __init__(self) -> None:
        self.failing: set[str] = set()
        self.hanging: set[str] = set()
        self.held: set[str] = set()

    async def __call__(self, request: Request) -> Response | None:
        match = CHANGED.search(request.url.path)
        if match is None or request.method != "PATCH":
            return None
        is_dry = request.query_params.get("dryRun") == "All"
        step = f"{match[1] or match[2]}.{'plan' if is_dry else 'apply'}"
        if step in self.failing:
            return refuse(422, f"it is not to pass {step}", "Invalid")
        while step in self.hanging:
            self.held.add(step)
            await asyncio.sleep(0.02)
        return None


@contextmanager
def open_shop(
    folder: Path, cluster: Cluster, namespace: str, faults: Faults, *, approve_all: bool
) -> Iterator[KubernetesSite]:
    """Serve an app whose three components need each other in turn, on a cluster with faults."""
    need_terraform()
    site = make_site(folder)
    shop = KubernetesSite(site, cluster=cluster, namespace=namespace)
    files = {
        "components/site.toml": f'{MANIFEST}dependencies = ["web"]\n',
        "components/task.toml": TASK,
    }
    placed = {name: text.replace("NAMESPACE", namespace) for name, text in files.items()}
    with run_proxy(cluster, faults, folder) as kubeconfig:
        try:
            shop.begin(placed, kubeconfig, approve_all=approve_all)
            yield shop
        finally:
            faults.hanging.clear()
            site.end()


def look(shop: KubernetesSite, workflow: str) -> tuple[str, Mapping[str, Any]]:
    """Return the state of a workflow, and its steps by name."""
    shown = shop.site.get(f"/v1/workflows/{workflow}")
    return str(shown["state"]), {step["name"]: step for step in shown["steps"]}


def await_state(shop: KubernetesSite, workflow: str, wanted: str) -> Mapping[str, Any]:
    wait_until(lambda: look(shop, workflow)[0] == wanted, f"it has {wanted}")
    return look(shop, workflow)[1]


def expect_deployed(shop: KubernetesSite) -> None:
    """Everything is there, once, and the release is not stuck."""
    *others, job = sorted(shop.list_objects(), key=lambda name: name.startswith("Job/"))
    assert set(others) == list_wanted("0")
    assert job.startswith("Job/task-")
    assert shop.list_statuses()[-1] == "deployed"


def test_what_failed_is_tried_again_and_the_rest_follows(
    tmp_path: Path, cluster: Cluster, namespace: str
) -> None:
    faults = Faults()
    faults.failing |= set(JOBS)
    with open_shop(tmp_path, cluster, namespace, faults, approve_all=True) as shop:
        workflow = shop.start_work("reprovision")

        for name in JOBS:
            steps = await_state(shop, workflow, "failed")
            assert [each for each, step in steps.items() if step["state"] == "failed"] == [name]
            assert steps[name]["reason"] == "object_refused", steps[name]
            assert f"it is not to pass {name}" in steps[name]["message"]
            later = list(steps)[list(steps).index(name) + 1 :]
            assert {steps[each]["state"] for each in later} <= {"pending"}
            faults.failing.discard(name)
            shop.site.post(f"/v1/workflows/{workflow}/steps/{name}/retry")

        await_state(shop, workflow, "succeeded")
        expect_deployed(shop)


def test_what_is_cancelled_ends_and_leaves_nothing_in_the_way(
    tmp_path: Path, cluster: Cluster, namespace: str
) -> None:
    faults = Faults()
    with open_shop(tmp_path, cluster, namespace, faults, approve_all=False) as shop:
        for name in STEPS:
            cancel_at(shop, faults, name)

            lanes = shop.site.get(f"/v1/installs/{shop.site.install}")["lanes"]
            assert {lane["state"] for lane in lanes} <= {"free"}

        path = f"/v1/installs/{shop.site.install}/approve-all"
        assert shop.site.client.put(path, json={"approve_all": True}).status_code == 200
        shop.deploy_all()
        expect_deployed(shop)


def cancel_at(shop: KubernetesSite, faults: Faults, name: str) -> None:
    """Start a deployment, cancel it while it is at a step, and wait for its end."""
    faults.hanging.add(name)
    workflow = shop.start_work("reprovision")
    wait_until(lambda: is_at(shop, faults, workflow, name), f"it is at {name}")
    shop.site.post(f"/v1/workflows/{workflow}/cancel")
    steps = await_state(shop, workflow, "cancelled")
    assert steps[name]["state"] == "cancelled", steps[name]
    faults.hanging.clear()
    faults.held.clear()


def is_at(shop: KubernetesSite, faults: Faults, workflow: str, name: str) -> bool:
    """Return whether a workflow is in the midst of a step; gates on the way there are approved."""
    _, steps = look(shop, workflow)
    for each, step in steps.items():
        if step["kind"] == "gate" and step["state"] == "active" and each != name:
            path = f"/v1/workflows/{workflow}/steps/{each}/approve"
            shop.site.post(path, {"digest": step["digest"]})
    if steps[name]["kind"] == "gate":
        return bool(steps[name]["state"] == "active")
    return name in faults.held
