"""Chores of the server: no failure of a round, a row or an org stops another."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from exclave.api.metrics import Metrics
from exclave.control.background.tasks import list_chores
from exclave.control.background.timers import UNMOVED, fire_due, move_unmoved
from exclave.control.chores import Chore, RowWorker, run_chore
from exclave.control.deps import Deps
from exclave.control.installs import actions
from exclave.control.installs.scheduler import fire_schedules
from exclave.control.metrics import gather_totals
from exclave.control.progress import lane_turns
from exclave.domain.identity import InstallId, OrgId, QueueId, User
from exclave.domain.workflows import StepKind, Workflow, WorkflowState
from exclave.storage import schedules, workflows
from exclave.storage.engine.database import Tx
from exclave.storage.workflows import Loaded
from exclave.wire.workflows import NewStep
from tests.integration.control.conftest import World
from tests.integration.control.hostile_kit import write_hostile_app
from tests.support.apps import edit
from tests.support.install_fixture import make_install_fixture, provision
from tests.support.world import ManualClock, gate, make_install, make_org, run_workflow
from tests.unit.docs.pages import ROOT, Page

TIMER = NewStep(name="nap", kind=StepKind.TIMER, delay_s=60)


@pytest.fixture
def break_org(monkeypatch: pytest.MonkeyPatch) -> dict[str, None]:
    """Orgs whose workflows cannot be moved, because of a mistake that nobody expects."""
    broken: dict[str, None] = {}
    find = lane_turns.find_blocked

    def find_blocked(tx: Tx, loaded: Loaded, value: Workflow) -> frozenset[str]:
        if loaded.org in broken:
            raise RecursionError
        return find(tx, loaded, value)

    monkeypatch.setattr(lane_turns, "find_blocked", find_blocked)
    return broken


async def make_other(deps: Deps) -> tuple[User, QueueId]:
    user = await make_org(deps, "other")
    return user, await make_install(deps, user)


async def read_states(deps: Deps, org: OrgId) -> set[str]:
    rows = await deps.db.read(
        lambda tx: workflows.list_workflows(tx, org, before="", limit=100, queue=None, state=None)
    )
    return {row.state for row in rows}


async def test_a_timer_that_cannot_ring_keeps_no_other_from_it(
    world: World, break_org: dict[str, None]
) -> None:
    other, queue = await make_other(world.deps)
    for _ in range(3):
        await run_workflow(world.deps, other, queue, TIMER)
    await run_workflow(world.deps, world.user, world.queue, TIMER)
    world.clock.advance(61)
    break_org[other.org] = None

    failed, due = await fire_due(world.deps)

    assert await read_states(world.deps, world.user.org) == {"succeeded"}
    assert await read_states(world.deps, other.org) == {"running"}
    assert len(failed) == 3
    assert due is not None
    assert due > world.clock.now()
    break_org.clear()
    world.clock.advance(61)
    await fire_due(world.deps)
    assert await read_states(world.deps, other.org) == {"succeeded"}


async def test_a_workflow_that_cannot_be_moved_keeps_no_other_waiting(
    world: World, break_org: dict[str, None]
) -> None:
    other, queue = await make_other(world.deps)
    await run_workflow(world.deps, other, queue, gate("ok"))
    await run_workflow(world.deps, world.user, world.queue, gate("ok"))
    world.clock.advance(120)
    began = world.clock.now()
    break_org[other.org] = None

    await move_unmoved(world.deps, RowWorker(world.deps, UNMOVED))

    assert await world.deps.db.read(lambda tx: workflows.list_unmoved(tx, began, 10)) == []
    assert world.deps.chores.of(UNMOVED).rows_failed == 1


async def test_a_schedule_that_cannot_begin_keeps_no_other_from_it(
    deps: Deps, user: User, break_org: dict[str, None]
) -> None:
    life = await provision(deps, user)
    other = await make_org(deps, "other")
    second = await provision(deps, other)
    clock = deps.clock
    assert isinstance(clock, ManualClock)
    clock.advance(15 * 60)
    break_org[other.org] = None

    due = await fire_schedules(deps)

    await life.run()
    assert life.ran.count("action cron ask") == 1
    assert due is not None
    assert due > clock.now()
    rows = await deps.db.read(lambda tx: schedules.list_schedules(tx, other.org, second.install))
    assert "unexpected error" in next(row.note for row in rows if row.kind == "action")


@pytest.mark.parametrize("cron", ["@every 5m", "0 0 30 2 *"])
async def test_a_schedule_that_is_never_due_fails_no_install(
    deps: Deps, user: User, tmp_path: Path, cron: str
) -> None:
    directory = write_hostile_app(tmp_path)
    trigger = f'type = "cron"\ncron_schedule = "{cron}"'
    edit(directory, "actions/text.toml", 'type = "manual"', trigger)
    life, workflow = await make_install_fixture(deps, user, directory)
    life.outputs["component:net"] = {"id": "net-1"}
    await life.report()
    await life.run()

    assert (await life.show(workflow)).state is WorkflowState.SUCCEEDED
    shown = (await actions.list_actions(deps, user, InstallId(life.install))).items
    told = next(each for each in shown if each.name == "text").triggers[0]
    assert told.next_at is None
    assert cron in told.note


async def test_schedules_beyond_the_quota_fail_no_install(deps: Deps, user: User) -> None:
    scarce = replace(deps, quotas=replace(deps.quotas, schedules=1))
    life, workflow = await make_install_fixture(scarce, user)
    await life.report()
    await life.run()

    assert (await life.show(workflow)).state is WorkflowState.SUCCEEDED
    rows = await deps.db.read(lambda tx: schedules.list_schedules(tx, user.org, life.install))
    assert {row.note for row in rows} == {"the org may have 1 schedules"}


async def test_a_chore_goes_on_after_a_failed_round_and_its_metrics_say_so(world: World) -> None:
    rounds = 0
    done = asyncio.Event()

    async def fail_first() -> float:
        nonlocal rounds
        rounds += 1
        if rounds == 1:
            world.deps.hub.wake(["go"])
            raise ValueError("it's broken")
        done.set()
        return 60.0

    task = asyncio.create_task(run_chore(world.deps, Chore("mine", fail_first, wakes=("go",))))
    await asyncio.wait_for(done.wait(), 10)
    await asyncio.sleep(0)
    text = Metrics().render(await gather_totals(world.deps)).decode()
    world.deps.hub.close()
    await asyncio.wait_for(task, 10)

    assert 'exclave_chore_runs{chore="mine"} 2.0' in text
    assert 'exclave_chore_failures{chore="mine"} 1.0' in text
    assert 'exclave_chore_last_success_timestamp_seconds{chore="mine"}' in text


async def test_every_chore_has_a_name_of_its_own_and_a_round_without_work_passes(
    world: World,
) -> None:
    chores = list_chores(world.deps)

    rests = [await chore.run_round() for chore in chores]

    assert len({chore.name for chore in chores}) == len(chores)
    assert all(rest > 0 for rest in rests)


async def test_the_page_on_architecture_lists_every_chore(world: World) -> None:
    page = Page(ROOT / "docs/architecture.md")

    named = page.first_column("Background work")

    assert sorted(named) == sorted(chore.name for chore in list_chores(world.deps))
