"""Work that must stop: cancelled, superseded, not renewed, refused; and what is reported."""

from pathlib import Path

import pytest

from exclave.runner.control_plane.access_token import IdentityRefused
from exclave.runner.executions.outbox import WaitingResult
from exclave.runner.jobs.executor import JobRun, StopRequest
from exclave.runner.logs.spool import LogWriter
from exclave.wire.jobs import OutcomeState, Reason
from exclave.wire.runner import Outcome
from tests.unit.runner.harness import FakeExecutor, RunnerHarness, expect, run_scenario


@pytest.mark.parametrize(("mutating", "after_s"), [(False, 45.0), (True, 600.0)])
def test_the_dead_man_stops_work_that_cannot_be_renewed(
    tmp_path: Path, *, mutating: bool, after_s: float
) -> None:
    async def scenario(house: RunnerHarness) -> None:
        runner, task = house.start()
        name = house.control.add_job(mutating=mutating)
        await house.clock.sleep(20)
        house.control.down_for["renew"] = None
        await house.clock.sleep(1000)
        last_renewal = house.control.renewals[-1][0]
        reason, at = house.executor.stopped[name]
        house.control.down_for.clear()
        await house.clock.sleep(60)
        await house.stop(runner, task)

        assert reason is Reason.DEADMAN
        assert after_s - 0.1 <= at - last_renewal <= after_s + 0.1
        expect(house.control.result_of(name), OutcomeState.INTERRUPTED, Reason.DEADMAN)
        assert house.executor.runs == {name: 1}

    house = run_scenario(tmp_path, scenario, lasts_s=5000.0)

    assert "deadman_fired" in house.audit_events()


def test_superseded_work_stops_at_once_and_reports_no_success(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        runner, task = house.start()
        name = house.control.add_job(mutating=True)
        await house.clock.sleep(10)
        house.control.executions[name].superseded = True
        await house.clock.sleep(20)

        assert house.executor.stopped[name][0] is Reason.RUNNER_STOPPED_IT
        assert house.executor.running == {}
        assert house.control.result_of(name) is None
        assert list((house.config.data / "outbox").iterdir()) == []
        await house.stop(runner, task)

    house = run_scenario(tmp_path, scenario, lasts_s=500.0)

    assert "result_refused" in house.audit_events()


class Stubborn(FakeExecutor):
    """Succeeds, whatever it is told."""

    async def run(self, job: JobRun, log: LogWriter, stop: StopRequest) -> Outcome:
        await super().run(job, log, StopRequest())
        return Outcome(state=OutcomeState.SUCCEEDED, reason=Reason.COMPLETED)


def test_a_success_of_superseded_work_is_not_reported_as_one(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        house.executor = Stubborn(house.clock, lasts_s=30.0)
        house.control.down_for["hand_in"] = None
        runner, task = house.start()
        name = house.control.add_job()
        await house.clock.sleep(10)
        house.control.executions[name].superseded = True
        await house.clock.sleep(40)

        (file,) = (house.config.data / "outbox").iterdir()
        outcome = WaitingResult.model_validate_json(file.read_bytes()).outcome
        expect(outcome, OutcomeState.INTERRUPTED, Reason.RUNNER_STOPPED_IT)
        await house.stop(runner, task)

    run_scenario(tmp_path, scenario)


def test_a_cancel_ends_the_work_as_cancelled(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        runner, task = house.start()
        name = house.control.add_job()
        await house.clock.sleep(10)
        house.control.executions[name].cancel = True
        await house.clock.sleep(10)
        await house.stop(runner, task)

        expect(house.control.result_of(name), OutcomeState.CANCELLED, Reason.CANCELLED)

    house = run_scenario(tmp_path, scenario, lasts_s=500.0)

    assert "cancel_received" in house.audit_events()


def test_a_job_cancelled_before_it_starts_never_runs(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        name = house.control.add_job()
        house.control.executions[name].cancel = True
        runner, task = house.start()
        await house.clock.sleep(10)
        await house.stop(runner, task)

        expect(house.control.result_of(name), OutcomeState.CANCELLED, Reason.CANCELLED)
        assert house.executor.runs == {}

    run_scenario(tmp_path, scenario)


def test_a_refused_start_runs_nothing(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        house.control.refuse_start = True
        name = house.control.add_job()
        runner, task = house.start()
        await house.clock.sleep(30)

        assert house.executor.runs == {}
        assert house.control.renewals[-1][1].executions == []
        assert list((house.config.data / "executions").iterdir()) == []
        await house.stop(runner, task)
        assert house.control.result_of(name) is None

    run_scenario(tmp_path, scenario)


def test_a_stop_interrupts_the_work_and_says_so(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        runner, task = house.start()
        name = house.control.add_job()
        await house.clock.sleep(10)
        await house.stop(runner, task)

        expect(house.control.result_of(name), OutcomeState.INTERRUPTED, Reason.RUNNER_RESTARTED)
        assert house.control.renewals[-1][1].executions == []

    run_scenario(tmp_path, scenario, lasts_s=500.0)


@pytest.mark.parametrize("code", ["runner_locked", "runner_revoked"])
def test_a_locked_runner_stops_its_work_and_ends_with_the_reason(tmp_path: Path, code: str) -> None:
    async def scenario(house: RunnerHarness) -> None:
        _, task = house.start()
        name = house.control.add_job()
        await house.clock.sleep(10)
        house.control.locked = code
        with pytest.raises(IdentityRefused):
            await task

        assert house.executor.stopped[name][0] is Reason.RUNNER_RESTARTED
        assert house.executor.running == {}

    run_scenario(tmp_path, scenario, lasts_s=500.0)
