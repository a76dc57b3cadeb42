"""States that people restore, with real Terraform on a real runner: what it then knows and does."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete

from exclave.control.installs.installs import release_lane
from exclave.control.terraform import rescued_states
from exclave.control.workflows import jobs
from exclave.domain.identity import InstallId
from exclave.storage.tables.terraform import tf_locks
from exclave.wire.jobs import JobReply
from exclave.wire.terraform import RescuedState
from tests.integration.runner.terraform.runner_site import SLOW, WORKSPACE, Site, open_site

FIRST = 'resource "terraform_data" "first" {}\n'
BOTH = FIRST + 'resource "terraform_data" "second" {}\n'


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(tmp_path, SLOW) as found:
        yield found


async def restore(site: Site, *what: str) -> Any:
    words = ("restore", site.queue, WORKSPACE, *what, "--reason", "looked at it", "--yes")
    return await site.ask("installs", "tf-state", *words)


async def await_rescued(site: Site) -> RescuedState:
    """Wait for the state that the runner could not store."""
    found: list[RescuedState] = []

    async def is_there() -> bool:
        listed = await rescued_states.list_rescued(
            site.deps, site.user, InstallId(site.queue), WORKSPACE
        )
        found[:] = listed.items
        return bool(found)

    await site.wait(is_there)
    return found[0]


async def release(site: Site) -> None:
    await release_lane(site.deps, site.user, InstallId(site.queue), WORKSPACE, "restored")


def list_ids(shown: Any) -> dict[str, str]:
    return {one["address"]: one["id"] for one in shown["newest"]["resources"]}


def count(planned: JobReply) -> dict[str, int]:
    summary = planned.outputs["summary"]
    assert isinstance(summary, dict)
    return {name: int(str(number)) for name, number in summary.items() if number}


async def test_after_a_write_that_failed_the_restored_state_leaves_nothing_to_do(
    site: Site,
) -> None:
    running = await site.begin_apply()
    await site.deps.db.write(lambda tx: tx.run(delete(tf_locks)).rowcount)
    (site.folder / "gate").touch()
    ended = await site.wait_end(running)
    assert (ended.state, ended.reason) == ("lost", "state_refused"), ended.message
    rescued = await await_rescued(site)

    shown = await restore(site, rescued.execution_id)

    assert list_ids(shown).keys() == {"terraform_data.first", "terraform_data.slow"}
    assert (shown["newest"]["serial"], shown["newest"]["restored_from"]) == (rescued.serial, None)
    await release(site)
    planned = await site.plan()
    assert (planned.outputs["noop"], planned.outputs["serial"]) == (True, rescued.serial)


async def test_what_a_zombie_made_is_known_again_and_not_made_twice(site: Site) -> None:
    running = await site.begin_apply()
    await jobs.declare_lost(site.deps, site.user, running, "its machine is gone")
    (site.folder / "gate").touch()
    rescued = await await_rescued(site)

    shown = await restore(site, rescued.execution_id)
    await release(site)
    healed = await site.apply()

    assert healed.state == "succeeded", healed.message
    made = list_ids(shown)["terraform_data.first"]
    again = await site.ask("installs", "tf-state", "show", site.queue, WORKSPACE)
    assert list_ids(again)["terraform_data.first"] == made
    assert (await site.plan()).outputs["noop"] is True


async def test_an_older_version_is_what_the_next_plan_begins_with(site: Site) -> None:
    site.write(FIRST)
    await site.apply()
    site.write(BOTH)
    used = await site.plan()
    await site.apply(used)
    before = await site.ask("installs", "tf-state", "show", site.queue, WORKSPACE)
    oldest = before["versions"][-1]

    shown = await restore(site, "--version", str(oldest["version"]))

    newest = shown["newest"]
    assert (newest["restored_from"], newest["lineage"]) == (oldest["version"], oldest["lineage"])
    assert newest["serial"] == before["newest"]["serial"] + 1
    assert list_ids(shown).keys() == {"terraform_data.first"}
    # The plan that was made for the very same content does not fit any more.
    refused = await site.apply(used)
    assert (refused.state, refused.reason) == ("failed", "plan_stale"), refused.message
    planned = await site.plan()
    assert (count(planned), planned.outputs["serial"]) == ({"add": 1}, newest["serial"])
    assert (await site.apply(planned)).state == "succeeded"
    after = await site.ask("installs", "tf-state", "show", site.queue, WORKSPACE)
    assert after["newest"]["serial"] > newest["serial"]
    assert after["newest"]["restored_from"] is None
    assert list_ids(after)["terraform_data.first"] == list_ids(before)["terraform_data.first"]
    kept = [one["version"] for one in after["versions"]]
    assert kept == list(range(len(kept), 0, -1))
