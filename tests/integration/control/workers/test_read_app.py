"""A directory is unpacked, read and checked by a worker: whatever it holds, others go on."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar, TypeVarTuple

import pytest

from exclave.control.apps import configs
from exclave.control.apps.sync import AppInvalid
from exclave.control.deps import Deps
from exclave.control.runtime.sync_folders import SyncFolders
from exclave.control.workers.pool import InlineWorkers, TookTooLong, WorkerProcesses
from exclave.control.workers.read_app import MOST_BYTES
from exclave.domain.identity import User
from tests.integration.control.syncing_kit import count_synced, list_archives
from tests.support.apps import make_app, sync, write_app
from tests.support.world import make_org

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class SlowWorkers(InlineWorkers):
    """For which everything takes too long."""

    async def run(self, org: str, function: Callable[[*Ts], T], *args: *Ts, seconds: float) -> T:
        raise TookTooLong(f"the work took longer than {seconds:g} s")


@pytest.fixture
async def processes() -> AsyncIterator[WorkerProcesses]:
    made = WorkerProcesses(2)
    yield made
    await made.close()


def list_codes(problem: AppInvalid) -> set[str]:
    diagnostics = problem.facts["diagnostics"]
    assert isinstance(diagnostics, list)
    return {each["code"] for each in diagnostics}


async def test_a_directory_that_takes_too_long_leaves_nothing(
    deps: Deps, user: User, tmp_path: Path
) -> None:
    app = write_app(tmp_path / "apps")
    await make_app(deps, user)
    folders = SyncFolders(tmp_path / "syncs")

    with pytest.raises(TookTooLong):
        await sync(replace(deps, workers=SlowWorkers(), sync_folders=folders), user, app)

    assert set((await count_synced(deps)).values()) == {0}
    assert await list_archives(deps) == []
    assert list((tmp_path / "syncs").iterdir()) == []


async def test_a_key_of_ten_thousand_parts_is_refused_unparsed(
    deps: Deps, user: User, tmp_path: Path
) -> None:
    hostile = "".join(".".join("a" * 10_000) + f".b{number} = 1\n" for number in range(10))
    app = write_app(tmp_path, changes={"components/evil.toml": hostile})
    await make_app(deps, user)

    with pytest.raises(AppInvalid) as refused:
        await sync(deps, user, app)

    assert list_codes(refused.value) == {"toml_syntax"}


async def test_an_app_with_too_much_text_is_refused(deps: Deps, user: User, tmp_path: Path) -> None:
    app = write_app(tmp_path, changes={"README.md": "x" * (MOST_BYTES + 1)})
    await make_app(deps, user)

    with pytest.raises(AppInvalid) as refused:
        await sync(deps, user, app)

    assert list_codes(refused.value) == {"file_too_large"}
    assert set((await count_synced(deps)).values()) == {0}


async def test_so_many_findings_are_counted_and_some_of_them_shown(
    deps: Deps, user: User, tmp_path: Path
) -> None:
    lines = "".join(f'[[input]]\nname = "i{number}"\n' for number in range(600))
    app = write_app(tmp_path, changes={"inputs.toml": lines})
    await make_app(deps, user)

    with pytest.raises(AppInvalid) as refused:
        await sync(deps, user, app)

    diagnostics = refused.value.facts["diagnostics"]
    assert isinstance(diagnostics, list)
    assert len(diagnostics) <= 1000


@pytest.mark.skipif(sys.platform != "linux", reason="limits of processes are Linux's")
async def test_processes_sync_for_two_orgs_and_give_the_same_answer(
    deps: Deps, user: User, tmp_path: Path, processes: WorkerProcesses
) -> None:
    other = await make_org(deps, "other")
    app = write_app(tmp_path)
    for each in (user, other):
        await make_app(deps, each)
    inside = replace(deps, workers=processes)

    first, second = await asyncio.gather(sync(inside, user, app), sync(inside, other, app))

    assert first.changed
    assert second.changed
    assert processes.tally.calls == 2
    assert not (await sync(deps, user, app)).changed


async def test_what_differs_is_shown_line_by_line_unless_that_takes_too_long(
    deps: Deps, user: User, tmp_path: Path
) -> None:
    await make_app(deps, user)
    await sync(deps, user, write_app(tmp_path, changes={"README.md": "# A\nsame\n"}))
    app = write_app(tmp_path, changes={"README.md": "# B\nsame\n"})

    shown = (await sync(deps, user, app, dry_run=True)).diff
    blind = await configs.add_line_diffs(replace(deps, workers=SlowWorkers()), user.org, shown)

    (change,) = (field for part in shown.parts for field in part.fields)
    assert change.diff == "@@ -1,2 +1,2 @@\n-# A\n+# B\n same"
    assert blind == shown
