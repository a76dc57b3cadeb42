"""A part whose cluster is another one than before: refused, until a person adopts it."""

import pytest

from exclave.runner.kube.api.client import ClusterClient
from exclave.wire.jobs import Reason
from tests.integration.runner.kube.manifests.objects import config_map, deployment, write
from tests.support.manifests import ManifestHarness
from tests.support.states import lose_state
from tests.support.terraform import Ran

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


async def lose(bench: ManifestHarness) -> None:
    await lose_state(bench.base.deps, bench.base.user.org, bench.base.queue, "component:web")


async def read_deletions(bench: ManifestHarness, adopt: bool) -> set[str]:
    """Return what a plan of the text that has no `extra` removes."""
    planned = await bench.plan(write(config_map("settings", v="1")), adopt=adopt)
    return await list_deleted(bench, planned)


async def list_deleted(bench: ManifestHarness, planned: Ran) -> set[str]:
    """Return what a plan removes here: installs of earlier tests have the same id."""
    resources = (await bench.read_plan(planned))["resources"]
    here = [entry for entry in resources if f"/{bench.namespace}/" in entry["address"]]
    return {entry["name"] for entry in here if entry["action"] == "delete"}


async def test_a_lost_state_is_rebuilt_from_the_marks_of_what_the_part_applied(
    bench: ManifestHarness,
) -> None:
    await bench.deploy(write(config_map("settings", v="1"), config_map("extra"), deployment("web")))
    path = f"/api/v1/namespaces/{bench.namespace}/configmaps"
    copied = dict(bench.cluster.request("GET", f"{path}/extra"))
    metadata = {**copied["metadata"], "name": "copied", "managedFields": None}  # type: ignore[dict-item]
    metadata.pop("resourceVersion")
    bench.cluster.request("POST", path, {**copied, "metadata": metadata})
    await lose(bench)

    unknown = await read_deletions(bench, adopt=False)
    planned = await bench.plan(write(config_map("settings", v="1")), adopt=True)
    applied = await bench.apply(planned)
    await bench.tear_down()

    assert unknown == set()
    assert await list_deleted(bench, planned) == {"extra", "web"}
    assert "left alone, because it carries the mark but is a copy: ConfigMap/" in planned.text
    assert applied.outcome.state == "succeeded", applied.text
    assert not bench.cluster.exists(f"{path}/settings")
    assert not bench.cluster.exists(f"{path}/extra")
    assert bench.cluster.exists(f"{path}/copied")


async def test_a_namespace_that_the_part_made_is_known_again_and_not_removed(
    bench: ManifestHarness,
) -> None:
    bench.namespace = f"{bench.namespace}-own"
    await bench.deploy(write(config_map("settings", v="1"), config_map("extra")))
    await lose(bench)

    removed = await read_deletions(bench, adopt=True)

    assert removed == {"extra"}
    bench.cluster.api.delete(f"/api/v1/namespaces/{bench.namespace}")


async def test_what_another_part_applied_is_never_adopted(bench: ManifestHarness) -> None:
    await bench.deploy(write(config_map("settings", v="1")))
    others = await bench.plan(write(config_map("theirs")), workspace="component:other")
    await bench.apply(others, workspace="component:other")
    await lose(bench)

    assert await read_deletions(bench, adopt=True) == set()
