from pathlib import Path

from exclave.client.problems import ProxyTooLarge, RemoteProblem
from exclave.runner.logs.protocols import SendLog, ShippedLog
from exclave.wire.jobs import OutcomeState, Reason
from exclave.wire.runner import Result, ResultReply
from tests.unit.runner.fake_control import TIMINGS, FakeControl
from tests.unit.runner.harness import FakeLog, RunnerHarness, expect, run_scenario


class SlowLog(FakeLog):
    """Arrives only once it is let through."""

    through = False

    def __init__(self, house: RunnerHarness) -> None:
        super().__init__()
        self._house = house

    async def drain(self, timeout_s: float) -> bool:
        await self._house.clock.sleep(timeout_s)
        return self.through


class SlowHouse(RunnerHarness):
    """Its logs take their time."""

    def open_log(self, folder: Path, execution_id: str, send: SendLog) -> ShippedLog:
        return self.logs.setdefault(execution_id, SlowLog(self))


def test_a_result_waits_for_its_log_while_nobody_answers(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        runner, task = house.start()
        name = house.control.add_job(mutating=True)
        await house.clock.sleep(3)
        house.control.down = True
        await house.clock.sleep(3600)
        house.control.down = False
        await house.clock.sleep(60)
        assert house.control.result_of(name) is None
        SlowLog.through = True
        await house.clock.sleep(10)
        SlowLog.through = False
        await house.stop(runner, task)

        assert house.control.result_of(name) is not None

    run_scenario(tmp_path, scenario, SlowHouse)


def test_a_log_that_does_not_get_through_does_not_hold_the_result_for_ever(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        runner, task = house.start()
        name = house.control.add_job()
        await house.clock.sleep(80)
        await house.stop(runner, task)

        assert house.control.result_of(name) is not None

    run_scenario(tmp_path, scenario, SlowHouse, ship_logs_s=60.0)


class Picky(FakeControl):
    """Takes no outputs."""

    async def hand_in(self, token: str, execution_id: str, request: Result) -> ResultReply:
        if request.outcome.outputs:
            raise ProxyTooLarge("POST /v1/executions/exe_1/result", 5_000_000)
        return await super().hand_in(token, execution_id, request)


def test_outputs_that_are_not_taken_fail_the_job_visibly(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        house.control = Picky(house.clock)
        runner, task = house.start()
        name = house.control.add_job()
        await house.clock.sleep(10)
        await house.stop(runner, task)

        outcome = house.control.result_of(name)
        expect(outcome, OutcomeState.FAILED, Reason.OUTPUTS_INVALID)
        assert outcome is not None
        assert "refuses a body of 5000000 bytes" in outcome.message
        assert "client_max_body_size" in outcome.message

    run_scenario(tmp_path, scenario)


class Clashing(FakeControl):
    """Has a clash in its database at first."""

    clashes = 3

    async def hand_in(self, token: str, execution_id: str, request: Result) -> ResultReply:
        self.clashes -= 1
        if self.clashes >= 0:
            raise RemoteProblem(409, "raced", "this clashes with what somebody else just wrote")
        return await super().hand_in(token, execution_id, request)


def test_a_conflict_that_decides_nothing_does_not_settle_a_result(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        house.control = Clashing(house.clock)
        runner, task = house.start()
        name = house.control.add_job()
        await house.clock.sleep(60)
        await house.stop(runner, task)

        expect(house.control.result_of(name), OutcomeState.SUCCEEDED, Reason.COMPLETED)
        assert "result_refused" not in house.audit_events()

    run_scenario(tmp_path, scenario)


def test_a_result_that_nobody_takes_for_too_long_is_kept_for_a_person(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        house.control.timings = TIMINGS.model_copy(update={"result_retry_s": 3600.0})
        house.control.down_for["hand_in"] = None
        runner, task = house.start()
        name = house.control.add_job()
        await house.clock.sleep(3600 + 600)
        await house.stop(runner, task)

        kept = [file.name for file in (house.config.data / "outbox").iterdir()]
        assert kept == [f"{name}.abandoned"]
        assert "result_abandoned" in house.audit_events()
        assert house.control.calls["hand_in"] > 3600 / 300

    run_scenario(tmp_path, scenario)
