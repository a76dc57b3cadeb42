"""Stops and timeouts of helm jobs: prompt, with nothing running afterwards, and repairable."""

import asyncio

import pytest

from exclave.base.json_values import object_or_empty
from exclave.runner.processes import procfs
from exclave.wire.jobs import OutcomeState, Reason
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
