"""Kill -9 of the runner in mid-apply: over HTTP, with processes that outlive it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from exclave.base.errors import NotFound
from exclave.control.terraform import orphans as terraform_orphans
from exclave.control.terraform import workspaces
from exclave.domain.identity import InstallId
from tests.integration.runner.terraform.runner_site import SLOW, WORKSPACE, Site, open_site


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(tmp_path, SLOW) as found:
        yield found


async def test_what_was_made_but_not_saved_is_listed_with_import_blocks(site: Site) -> None:
    found = await site.begin_apply()

    await site.kill_runner()
    await site.start_runner()
    ended = await site.wait_end(found)

    assert (ended.state, ended.reason) == ("lost", "runner_restarted")
    orphans = (
        await terraform_orphans.list_orphans(site.deps, site.user, InstallId(site.queue))
    ).orphans
    assert {(one.address, one.certainty) for one in orphans} == {
        ("terraform_data.first", "created"),
        ("terraform_data.slow", "unknown"),
    }
    assert any(
        one.import_block.startswith("import {\n  to = terraform_data.first") for one in orphans
    )
    shown = await workspaces.show_workspace(
        site.deps, site.user, InstallId(site.queue), WORKSPACE, None
    )
    assert shown.lock is not None
    assert shown.lock.stale


async def test_nothing_is_there_before_the_first_apply(site: Site) -> None:
    with pytest.raises(NotFound):
        await workspaces.show_workspace(
            site.deps, site.user, InstallId(site.queue), WORKSPACE, None
        )
