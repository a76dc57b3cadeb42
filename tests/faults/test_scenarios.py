"""The classic failures, one by one, against the real control plane and the real runner."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from unittest.mock import patch

from exclave.control.after_restore import settle_restore
from exclave.control.workflows import jobs, workflows
from exclave.runner.executions.outbox import Outbox
from tests.faults.sim.stage import APPLY, PLAN, ScenarioDriver, set_stage
from tests.support.virtual_time import run_virtual
from tests.support.world import (
    job,
)

Play = Callable[[ScenarioDriver], Awaitable[None]]


class FailsFast(Random):
    """Chooses that a lost reply is noticed at once."""

    def random(self) -> float:
        return 0.1


def play(folder: Path, scene: Play, *, runners: int = 1, step_s: float | None = None) -> None:
    async def main() -> None:
        async with set_stage(folder, runners=runners, step_s=step_s) as stage:
            await scene(stage)
            assert not stage.broken

    run_virtual(main())


def test_a_control_plane_that_is_down_for_an_hour_loses_nothing(tmp_path: Path) -> None:
    async def scene(stage: ScenarioDriver) -> None:
        await stage.order(APPLY)
        await stage.until_job("running")

        stage.control.kill()
        await asyncio.sleep(3600)
        stage.control.start()

        ended = await stage.until_job("succeeded", "failed", "lost")
        (execution,) = stage.executions
        assert (ended.state, ended.attempts) == ("succeeded", 1)
        assert execution.log_bytes == execution.log_end > 0

    play(tmp_path, scene)


def test_a_lost_poll_reply_gets_the_same_offer_again(tmp_path: Path) -> None:
    async def scene(stage: ScenarioDriver) -> None:
        await asyncio.sleep(5)
        stage.world.network._random = FailsFast(1)
        for machine in stage.machines:  # whoever gets the offer does not hear of it
            machine.link.cut(1e9, up=False, down=True)
        await stage.order(APPLY)
        await stage.until_job("offered")
        await asyncio.sleep(1)
        for machine in stage.machines:
            machine.link.heal()

        ended = await stage.until_job("succeeded")

        assert (len(stage.executions), ended.attempts) == (1, 1)

    play(tmp_path, scene)


def test_an_offer_that_nobody_starts_goes_to_another_runner(tmp_path: Path) -> None:
    async def scene(stage: ScenarioDriver) -> None:
        await asyncio.sleep(5)
        for machine in stage.machines:
            machine.link.cut(1e9, up=False, down=True)
        await stage.order(APPLY)
        await stage.until_job("offered")
        first = stage.executions[0].runner_id
        dead, alive = _tell_apart(stage, first)
        stage.machines[dead].crash(linger=False, gone=True)
        stage.machines[alive].link.heal()

        ended = await stage.until_job("succeeded")

        assert ended.attempts == 1
        assert stage.executions[-1].runner_id != first

    play(tmp_path, scene, runners=2)


def test_two_runners_of_one_install_take_turns_on_a_lane(tmp_path: Path) -> None:
    async def scene(stage: ScenarioDriver) -> None:
        for _ in range(3):
            await stage.order(APPLY)
            await stage.order(job("all", lanes=["sandbox"], mutating=True))

        await stage.until(lambda: [row.state for row in stage.jobs] == ["succeeded"] * 6)

        assert len({row.runner_id for row in stage.executions}) == 2
        assert len(stage.executions) == 6

    play(tmp_path, scene, runners=2)


def test_changes_cut_off_by_a_restart_are_lost_and_wait_for_a_person(tmp_path: Path) -> None:
    async def scene(stage: ScenarioDriver) -> None:
        workflow = await stage.order(APPLY)
        await stage.until_job("running")
        await asyncio.sleep(2)
        stage.machines[0].crash(linger=True)
        await asyncio.sleep(1)
        stage.machines[0].boot()

        ended = await stage.until_job("lost")

        assert (ended.reason, stage.lane_states) == (
            "runner_restarted",
            {"component:a": "needs_reconcile"},
        )
        assert stage.world.cloud.is_quiet(stage.executions[0].id)
        await stage.release("component:a")
        await stage.do(workflows.retry_step, workflow, "apply")
        await stage.until(lambda: len(stage.jobs) == 2)
        await stage.until_job("succeeded")

    play(tmp_path, scene)


def test_a_plan_cut_off_by_a_restart_is_done_again(tmp_path: Path) -> None:
    async def scene(stage: ScenarioDriver) -> None:
        await stage.order(PLAN)
        await stage.until_job("running")
        stage.machines[0].crash(linger=False)
        await asyncio.sleep(1)
        stage.machines[0].boot()

        ended = await stage.until_job("succeeded", "lost")

        assert (ended.state, ended.attempts) == ("succeeded", 2)

    play(tmp_path, scene)


def test_a_machine_declared_lost_changes_nothing_when_it_comes_back(tmp_path: Path) -> None:
    async def scene(stage: ScenarioDriver) -> None:
        workflow = await stage.order(APPLY)
        running = await stage.until_job("running")
        old = stage.executions[0]
        dead, _ = _tell_apart(stage, old.runner_id)
        stage.machines[dead].crash(linger=False)
        await stage.do(jobs.declare_lost, running.id, "the machine burned down")
        await stage.release("component:a")
        await stage.do(workflows.retry_step, workflow, "apply")
        await stage.until(lambda: len(stage.jobs) == 2 and stage.jobs[1].state == "running")

        stage.machines[dead].boot()
        await stage.until(lambda: stage.executions[0].late_result is not None)

        await stage.until(lambda: stage.jobs[1].state == "succeeded")
        assert stage.jobs[0].state == "lost"
        assert stage.executions[0].log_bytes == old.log_bytes

    play(tmp_path, scene, runners=2)


def test_after_a_restore_a_zombie_is_refused_and_stops(tmp_path: Path) -> None:
    async def scene(stage: ScenarioDriver) -> None:
        workflow = await stage.order(APPLY)
        await stage.until_job("running")
        await asyncio.sleep(1)
        raw = _raw(stage)
        backup = raw.serialize()
        old = stage.executions[0]
        await asyncio.sleep(30)
        stage.control.kill()
        await asyncio.sleep(1)
        raw.deserialize(backup)
        stage.control.start()
        deps = stage.control.deps
        assert deps is not None

        restored = deps.db.write_now(lambda tx: settle_restore(tx, deps))

        assert (restored.generation, restored.interrupted) == (2, 1)
        assert (stage.jobs[0].state, stage.jobs[0].reason) == ("lost", "restored")
        await stage.until(lambda: stage.world.cloud.is_quiet(old.id))
        await stage.release("component:a")
        await stage.do(workflows.retry_step, workflow, "apply")
        await stage.until(lambda: len(stage.jobs) == 2 and stage.jobs[1].state == "succeeded")
        assert stage.executions[-1].epoch >> 32 == 2

    play(tmp_path, scene)


def test_a_plan_that_is_cut_off_stops_before_it_is_offered_again(tmp_path: Path) -> None:
    async def scene(stage: ScenarioDriver) -> None:
        await stage.order(PLAN)
        await stage.until_job("running")
        cut, _ = _tell_apart(stage, stage.executions[0].runner_id)
        stage.machines[cut].link.cut(1e9, up=True, down=True)

        ended = await stage.until_job("succeeded", "lost")

        assert (ended.state, ended.attempts) == ("succeeded", 2)

    play(tmp_path, scene, runners=2, step_s=50)


def test_changes_that_are_cut_off_stop_before_they_are_given_up(tmp_path: Path) -> None:
    async def scene(stage: ScenarioDriver) -> None:
        workflow = await stage.order(APPLY)
        await stage.until_job("running")
        cut, _ = _tell_apart(stage, stage.executions[0].runner_id)
        stage.machines[cut].link.cut(1e9, up=True, down=True)
        ended = await stage.until_job("lost")

        await stage.release("component:a")
        await stage.do(workflows.retry_step, workflow, "apply")
        await asyncio.sleep(600)

        assert ended.reason == "runner_silent"
        assert stage.jobs[1].state == "running"

    play(tmp_path, scene, runners=2, step_s=400)


def test_a_crash_after_the_acknowledgement_leaves_nothing_to_report(tmp_path: Path) -> None:
    """Found by seed 115: the next start took settled work for work that was cut off."""
    remove = Outbox.remove

    async def scene(stage: ScenarioDriver) -> None:
        def remove_and_die(outbox: Outbox, execution_id: str) -> None:
            remove(outbox, execution_id)
            stage.machines[0].crash(linger=False)
            raise asyncio.CancelledError

        with patch.object(Outbox, "remove", remove_and_die):
            await stage.order(APPLY)
            await stage.until_job("succeeded")
            await stage.until(lambda: not stage.machines[0].is_up)

        stage.machines[0].boot()
        await asyncio.sleep(60)

        (execution,) = stage.executions
        assert execution.late_result is None
        assert execution.log_bytes == execution.log_end

    play(tmp_path, scene)


def _tell_apart(stage: ScenarioDriver, runner: str) -> tuple[int, int]:
    """Tell which machine has this runner, and which is the other."""
    mine = [runner in (one.folder / "identity.json").read_text() for one in stage.machines]
    return mine.index(True), mine.index(False)


def _raw(stage: ScenarioDriver) -> sqlite3.Connection:
    engine = stage.control.db.dialect.open_writer()
    raw = engine.raw_connection().driver_connection
    assert isinstance(raw, sqlite3.Connection)
    return raw
