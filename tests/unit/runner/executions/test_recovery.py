"""A runner that comes back: work is reported, never run again."""

from pathlib import Path

from exclave.wire.jobs import OutcomeState, Reason
from tests.unit.runner.harness import RunnerHarness, expect, run_scenario


def test_a_restart_reports_unfinished_work_and_never_runs_it_again(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        _, task = house.start()
        name = house.control.add_job(mutating=True)
        await house.clock.sleep(10)
        await house.crash(task)

        runner, task = house.start()
        await house.clock.sleep(30)
        await house.stop(runner, task)

        outcome = house.control.result_of(name)
        expect(outcome, OutcomeState.INTERRUPTED, Reason.RUNNER_RESTARTED)
        assert house.killed == [name]
        assert house.executor.runs == {name: 1}
        assert "restarted" in house.logs[name].kept.lines[-1]
        assert not house.control.executions[name].lost_by_proof
        assert {poll.boot for poll in house.control.polls} == {1, 2}

    run_scenario(tmp_path, scenario, lasts_s=500.0)


def test_a_restart_hands_in_a_result_that_was_only_written(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        _, task = house.start()
        name = house.control.add_job(mutating=True)
        house.control.down_for["hand_in"] = None
        await house.clock.sleep(10)
        await house.crash(task)
        house.control.down_for.clear()

        runner, task = house.start()
        await house.clock.sleep(10)
        await house.stop(runner, task)

        expect(house.control.result_of(name), OutcomeState.SUCCEEDED, Reason.COMPLETED)
        assert house.executor.runs == {name: 1}
        assert house.killed == []

    run_scenario(tmp_path, scenario)


def test_a_crash_before_the_work_began_reports_nothing_as_lost(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        house.control.down_for["start"] = None
        name = house.control.add_job(mutating=True)
        _, task = house.start()
        await house.clock.sleep(5)
        await house.crash(task)

        runner, task = house.start()
        await house.clock.sleep(5)
        await house.stop(runner, task)

        assert house.control.result_of(name) is None
        assert house.executor.runs == {}
        assert list((house.config.data / "executions").iterdir()) == []

    run_scenario(tmp_path, scenario)
