"""Stops and timeouts of helm jobs: prompt, with nothing running afterwards, and repairable."""

import asyncio

import pytest
from starlette.requests import Request
from starlette.responses import Response

from exclave.base.json_values import object_or_empty
from exclave.runner.processes import procfs
from exclave.wire.jobs import OutcomeState, Reason
from tests.support.cluster_proxy import ClusterProxy, serve_proxy
from tests.support.helm import HelmHarness

HANG = {"annotations.bed/fail": "hang"}


@pytest.mark.parametrize("seconds", [0.0, 0.3, 0.8, 2.5])
async def test_a_cancelled_apply_ends_at_once_and_the_next_deploy_repairs_it(
    bench: HelmHarness, seconds: float
) -> None:
    planned = await bench.plan_release(sets={**HANG, "extra": "true"})
    applying = asyncio.create_task(bench.apply_release(planned))
    await asyncio.sleep(seconds)
    bench.stop.request(Reason.CANCELLED, 5.0)

    stopped = await asyncio.wait_for(applying, 15.0)
    repaired = await bench.deploy(sets={"greeting": "repaired"})

    assert stopped.outcome.state is OutcomeState.CANCELLED, stopped.text
    assert procfs.list_marked(stopped.offer.execution_id) == []
    assert repaired.outcome.state is OutcomeState.SUCCEEDED, repaired.text
    assert not bench.has("configmaps/web-extra")
    data = object_or_empty(bench.get("configmaps/web-settings").get("data"))
    assert data["greeting"] == "repaired"


async def test_a_rollout_that_never_ends_is_a_failure_that_says_what_is_missing(
    bench: HelmHarness,
) -> None:
    failed = await bench.deploy(sets=HANG, timeout_s=15.0)

    assert failed.outcome.reason is Reason.TIMEOUT, failed.text
    assert f"Deployment {bench.namespace}/web" in failed.outcome.message


class Silence:
    """Answers nothing any more from a request on that comes after Helm has ended."""

    def __init__(self, bench: HelmHarness, path: str, number: int) -> None:
        self.bench, self.path, self.number = bench, path, number
        self.begun = asyncio.Event()

    async def __call__(self, request: Request) -> Response | None:
        """Let the request pass, or wait for ever."""
        if not self.begun.is_set() and request.url.path.endswith(self.path) and self._is_deployed():
            self.number -= 1
            if self.number == 0:
                self.begun.set()
        if self.begun.is_set():
            await asyncio.sleep(3600)
        return None

    def _is_deployed(self) -> bool:
        return self.bench.has("secrets/sh.helm.release.v1.web.v1") and bool(
            self.bench.get("secrets?labelSelector=owner=helm,status=deployed")["items"]
        )


@pytest.mark.parametrize(
    ("path", "number", "step"),
    [
        ("/secrets", 1, "the check of the release"),
        ("/services/web", 1, "the storing of the state"),
        ("/services/web", 2, "the reading of the outputs"),
    ],
)
async def test_a_cancelled_apply_ends_at_once_although_the_cluster_is_silent(
    bench: HelmHarness, path: str, number: int, step: str
) -> None:
    planned = await bench.plan_release()
    silence = Silence(bench, path, number)
    async with serve_proxy(ClusterProxy(bench.cluster, silence)) as address:
        bench.server = address
        applying = asyncio.create_task(bench.apply_release(planned))
        await asyncio.wait_for(silence.begun.wait(), 60.0)
        bench.stop.request(Reason.CANCELLED, 5.0)

        stopped = await asyncio.wait_for(applying, 20.0)

    bench.server = ""
    repaired = await bench.deploy(sets={"greeting": "repaired"})
    assert stopped.outcome.state is OutcomeState.CANCELLED, stopped.text
    assert stopped.outcome.message == f"stopped in {step}: cancelled"
    assert repaired.outcome.state is OutcomeState.SUCCEEDED, repaired.text
