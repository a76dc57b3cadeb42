"""A part whose cluster is another one than before: refused, until a person adopts it."""

import pytest

from exclave.runner.kube.api.client import ClusterClient
from exclave.wire.jobs import Reason
from tests.integration.runner.kube.manifests.objects import config_map, write
from tests.support.manifests import ManifestHarness

BEFORE = write(config_map("settings", v="1"), config_map("extra", v="1"))
AFTER = write(config_map("settings", v="2"))


@pytest.fixture
async def moved(bench: ManifestHarness, monkeypatch: pytest.MonkeyPatch) -> ManifestHarness:
    """Deploy something, then take the cluster for a restored copy with another identity."""

    async def read_other_uid(_: ClusterClient) -> str:
        return "00000000-0000-4000-8000-000000000000"

    await bench.deploy(BEFORE)
    monkeypatch.setattr(ClusterClient, "read_cluster_uid", read_other_uid)
    return bench


async def test_a_plan_for_another_cluster_is_refused_and_names_the_command(
    moved: ManifestHarness,
) -> None:
    planned = await moved.plan(AFTER)

    assert planned.outcome.reason is Reason.CLUSTER_UNREACHABLE
    assert "`exclave installs adopt INSTALL COMPONENT`" in planned.outcome.message


async def test_an_adopted_part_is_deployed_there_and_keeps_to_it(moved: ManifestHarness) -> None:
    planned = await moved.plan(AFTER, adopt=True)
    applied = await moved.apply(planned)
    again = await moved.plan(AFTER)

    document = await moved.read_plan(planned)
    assert "may move to another cluster" in document["notes"][0]
    assert applied.outcome.state == "succeeded", applied.text
    assert again.outputs["noop"] is True
    path = f"/api/v1/namespaces/{moved.namespace}/configmaps"
    assert moved.cluster.exists(f"{path}/settings")
    assert not moved.cluster.exists(f"{path}/extra")
