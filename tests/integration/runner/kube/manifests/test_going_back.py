"""A rollout that fails goes back to the plan that was deployed before, on a real API server."""

from typing import Any

from exclave.wire.jobs import Reason
from tests.integration.runner.kube.manifests.objects import config_map, deployment, write
from tests.support.manifests import ManifestHarness
from tests.support.terraform import Ran

GOOD = write(config_map("settings", v="1"), deployment("web"))
CRASHING = write(config_map("extra", v="2"), deployment("web", image="shop/web:2", bed_fail="oom"))


async def deploy_with_fall_back(bench: ManifestHarness, earlier: Ran, text: str) -> Ran:
    digest = earlier.outputs["digest"]
    ref = {"execution_id": earlier.offer.execution_id, "digest": digest}
    planned = await bench.plan(text, fall_back_to=ref)
    notes = (await bench.read_plan(planned))["notes"]
    assert f"if the rollout fails, it goes back to the plan {digest[:19]}…" in notes[-1]
    return await bench.apply(planned, wait={"going_back_s": 60.0})


def read_image(bench: ManifestHarness) -> str:
    path = f"/apis/apps/v1/namespaces/{bench.namespace}/deployments/web"
    live: Any = bench.cluster.request("GET", path)
    return str(live["spec"]["template"]["spec"]["containers"][0]["image"])


async def test_a_failed_rollout_goes_back_and_the_deploy_still_fails_with_its_cause(
    bench: ManifestHarness,
) -> None:
    earlier = await bench.plan(GOOD)
    await bench.apply(earlier)

    failed = await deploy_with_fall_back(bench, earlier, CRASHING)

    assert failed.outcome.reason is Reason.ROLLOUT_FAILED
    cause, returned = failed.outcome.message.splitlines()
    assert "container app was killed for its memory limit" in cause
    digest = earlier.outputs["digest"]
    assert returned == f"it went back to the plan {digest[:19]}…, which was deployed before"
    assert read_image(bench) == "shop/web:1"
    base = f"/api/v1/namespaces/{bench.namespace}/configmaps"
    assert bench.cluster.exists(f"{base}/settings")
    assert not bench.cluster.exists(f"{base}/extra")


async def test_after_going_back_nothing_differs_from_what_was_deployed_before(
    bench: ManifestHarness,
) -> None:
    earlier = await bench.plan(GOOD)
    await bench.apply(earlier)
    await deploy_with_fall_back(bench, earlier, CRASHING)

    scanned = await bench.plan(scan=True)
    again = await bench.plan(GOOD)

    assert (scanned.outputs["noop"], again.outputs["noop"]) == (True, True)


async def test_without_a_plan_to_go_back_to_what_failed_stays(bench: ManifestHarness) -> None:
    failed = await bench.deploy(CRASHING)

    assert failed.outcome.reason is Reason.ROLLOUT_FAILED
    assert "went back" not in failed.outcome.message
    assert read_image(bench) == "shop/web:2"


async def test_an_earlier_plan_that_is_gone_is_told_beside_the_cause(
    bench: ManifestHarness,
) -> None:
    earlier = await bench.plan(GOOD)
    await bench.apply(earlier)
    wrong = {"execution_id": earlier.offer.execution_id, "digest": f"sha256:{'0' * 64}"}
    planned = await bench.plan(CRASHING, fall_back_to=wrong)

    failed = await bench.apply(planned)

    assert failed.outcome.reason is Reason.ROLLOUT_FAILED
    assert "killed for its memory limit" in failed.outcome.message
    assert "failed too: the plan that was deployed is not the one" in failed.outcome.message
