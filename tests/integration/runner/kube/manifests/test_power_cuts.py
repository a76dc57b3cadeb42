"""A runner that dies at any moment of an apply leaves nothing that the next deploy cannot repair."""

import random
from typing import Any

import pytest

from exclave.control.installs.installs import release_lane
from exclave.domain.identity import InstallId
from exclave.wire.jobs import OutcomeState, Reason
from exclave.wire.runner import Outcome
from tests.integration.runner.kube.manifests.objects import config_map, deployment, write
from tests.support.manifests import ManifestHarness, PowerCut
from tests.support.terraform import Ran

LANE = "component:web"
OLD = write(config_map("kept", v="1"), config_map("dropped", v="1"), deployment("web"))
NEW = write(config_map("kept", v="2"), config_map("added", v="1"), deployment("web", replicas=2))
CUTS = 20


async def die(bench: ManifestHarness, planned: Ran, calls: int) -> bool:
    """Apply a plan and cut the power after so many calls; return whether it happened in time."""
    offer = await bench.base.offer(LANE, mutating=True)
    bench.cut_at = bench.calls + calls
    try:
        await bench.apply(planned, offer=offer, hand_in=False)
    except PowerCut:
        is_dead = True
    else:
        is_dead = False
    bench.cut_at = None
    lost = Outcome(state=OutcomeState.INTERRUPTED, reason=Reason.RUNNER_RESTARTED)
    await bench.base.peer.hand_in(offer.execution_id, offer.epoch, lost)
    await release_lane(
        bench.base.deps, bench.base.user, InstallId(bench.base.queue), LANE, "looked at"
    )
    return is_dead


def list_ours(bench: ManifestHarness) -> dict[str, Any]:
    found = bench.cluster.request("GET", f"/api/v1/namespaces/{bench.namespace}/configmaps")
    items: Any = found["items"]
    return {one["metadata"]["name"]: one["data"] for one in items if "data" in one}


async def test_a_deploy_after_a_power_cut_at_any_moment_converges(bench: ManifestHarness) -> None:
    assert (await bench.deploy(OLD)).outcome.state == "succeeded"
    before = bench.calls
    planned = await bench.plan(NEW)
    began = bench.calls
    assert (await bench.apply(planned)).outcome.state == "succeeded"
    total = bench.calls - began
    assert total > began - before > 0
    cuts = random.Random(4).sample(range(1, total), min(CUTS, total - 1))
    deaths = 0

    for number, cut in enumerate(cuts):
        wanted = OLD if number % 2 == 0 else NEW
        planned = await bench.plan(wanted)
        assert planned.outcome.state == "succeeded", planned.text
        deaths += await die(bench, planned, cut)

        again = await bench.deploy(wanted)

        assert (again.outcome.state, again.outcome.message) == ("succeeded", ""), cut
        names = {"kept", "dropped"} if wanted is OLD else {"kept", "added"}
        assert set(list_ours(bench)) == names | {"kube-root-ca.crt"}, cut
        assert (await bench.plan(wanted)).outputs["noop"] is True, cut

    assert deaths >= CUTS // 2


@pytest.mark.parametrize("calls", [3, 8, 14])
async def test_a_teardown_after_a_power_cut_leaves_nothing(
    bench: ManifestHarness, calls: int
) -> None:
    await bench.deploy(NEW)
    planned = await bench.plan(destroy=True)
    await die(bench, planned, calls)

    torn = await bench.tear_down()

    assert (torn.outcome.state, torn.outcome.message) == ("succeeded", "")
    assert set(list_ours(bench)) == {"kube-root-ca.crt"}
