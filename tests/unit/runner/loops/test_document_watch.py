"""The document of a Stack decides whether a runner works: read, refused, gone, out of reach."""

from pathlib import Path

import pytest

from exclave.base.secrets import Secret
from exclave.runner.cloud.accounts import SecretDenied
from exclave.runner.cloud.document_file import DocumentFile
from exclave.runner.executions.deps import Deps
from exclave.runner.executions.kill_switch import ThrownBy, disable_runner, is_disabled
from exclave.runner.jobs.executor import JobRun, StopRequest
from exclave.runner.logs.spool import LogWriter
from exclave.runner.loops.document_watch import AGAIN_AFTER_S, READ_WITHIN_S, DocumentWatch
from exclave.runner.loops.kill_switch_watch import watch_switch
from exclave.wire.jobs import JsonValue, OutcomeState, Reason
from exclave.wire.runner import Outcome
from tests.unit.runner.cloud.cloud_kit import ROLE, FakeAccount, StepClock, write_document
from tests.unit.runner.harness import FakeExecutor, RunnerHarness, expect, run_scenario

DOCUMENT = "document-arn"
LONG = 2000.0


class Stack(FakeAccount):
    """The customer's side: what the document says, and how the cloud answers."""

    def __init__(self, house: RunnerHarness) -> None:
        super().__init__(StepClock())
        self.refusals = 0
        self.reads = 0
        self.answers_after_s = 0.0
        self.house = house
        self.watch = DocumentWatch(self, DOCUMENT, DocumentFile(house.config.data))
        house.duties = [watch_switch, self._run]
        self.deps: Deps | None = None
        self.say()

    async def _run(self, deps: Deps) -> None:
        self.deps = deps
        await self.watch.run(deps)

    def say(self, **changes: JsonValue) -> None:
        self.texts[DOCUMENT] = write_document(**changes)

    async def read_secret(self, reference: str) -> Secret | None:
        self.reads += 1
        if self.refusals > 0:
            self.refusals -= 1
            raise SecretDenied("AccessDeniedException", status=400)
        text, denied = self.texts.get(reference, ""), self.denied
        await self.house.clock.sleep(self.answers_after_s)  # with what was true when it was asked
        if denied:
            raise SecretDenied("AccessDeniedException", status=400)
        return await super().read_secret(reference) if self.is_down else Secret(text)

    @property
    def why_closed(self) -> str:
        assert self.deps is not None
        return self.deps.gate.closed_because


def test_a_stopped_stack_ends_running_work_within_two_minutes(tmp_path: Path) -> None:
    ended: list[float] = []

    async def scenario(house: RunnerHarness) -> None:
        house.executor.stops_in_s = 1000.0
        stack = Stack(house)
        runner, task = house.start()
        name = house.control.add_job(mutating=True)
        await house.clock.sleep(61)
        stopped_at = house.clock.monotonic()
        stack.say(enabled="false")
        await house.clock.sleep(120)

        expect(house.control.result_of(name), OutcomeState.CANCELLED, Reason.DISABLED)
        ended.append(house.executor.stopped[name][1] - stopped_at)
        await house.stop(runner, task)

    house = run_scenario(tmp_path, scenario, lasts_s=LONG)

    assert ended[0] <= 31
    assert "document_changed" in house.audit_events()
    assert (house.config.data / "stack-document.json").stat().st_mode & 0o777 == 0o600


class StuckExecutor(FakeExecutor):
    """Does not end, whatever is asked of it."""

    async def run(self, job: JobRun, log: LogWriter, stop: StopRequest) -> Outcome:
        await stop.wait()
        await self.clock.sleep(10_000)
        return await super().run(job, log, stop)


def test_work_that_does_not_end_by_itself_is_killed_in_that_time(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        house.executor = StuckExecutor(house.clock)
        stack = Stack(house)
        _, task = house.start()
        name = house.control.add_job(mutating=True)
        await house.clock.sleep(61)
        stack.say(enabled="false")
        await house.clock.sleep(120)

        assert house.killed == [name]
        await house.crash(task)

    run_scenario(tmp_path, scenario)


@pytest.mark.parametrize("stopped_by", ["the switch", "denial"])
@pytest.mark.parametrize("answers_after_s", [0.0, 3.0, READ_WITHIN_S - 0.1])
def test_a_slow_store_of_secrets_does_not_make_the_stop_late(
    tmp_path: Path, stopped_by: str, answers_after_s: float
) -> None:
    async def scenario(house: RunnerHarness) -> None:
        house.executor = StuckExecutor(house.clock)
        stack = Stack(house)
        stack.answers_after_s = answers_after_s
        _, task = house.start()
        name = house.control.add_job(mutating=True)
        await house.clock.sleep(61)
        reads = stack.reads
        while stack.reads == reads:
            await house.clock.sleep(0.01)
        # The worst moment: what is on its way already says that all is well.
        stack.denied = stopped_by == "denial"
        stack.say(enabled="false")
        await house.clock.sleep(120)

        assert house.killed == [name]
        await house.crash(task)

    run_scenario(tmp_path, scenario, lasts_s=LONG)


def test_a_read_that_hangs_is_given_up_and_tried_again_soon(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        stack = Stack(house)
        runner, task = house.start()
        await house.clock.sleep(10)
        stack.answers_after_s, reads = 1000.0, stack.reads
        await house.clock.sleep(20 + 2 * (READ_WITHIN_S + AGAIN_AFTER_S))
        hung = stack.reads - reads
        stack.answers_after_s = 0.0
        stack.say(mode="plan-only")
        await house.clock.sleep(READ_WITHIN_S + AGAIN_AFTER_S)

        assert hung >= 2
        assert stack.watch.document is not None
        assert stack.watch.document.mode == "plan-only"
        assert not is_disabled(house.config.data)
        await house.stop(runner, task)

    run_scenario(tmp_path, scenario)


def test_a_stack_that_is_enabled_again_gives_work_back(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        stack = Stack(house)
        stack.say(enabled="false")
        runner, task = house.start()
        name = house.control.add_job()
        await house.clock.sleep(100)
        before = dict(house.executor.runs)
        stack.say()
        await house.clock.sleep(40)

        assert before == {}
        expect(house.control.result_of(name), OutcomeState.SUCCEEDED, Reason.COMPLETED)
        await house.stop(runner, task)

    run_scenario(tmp_path, scenario)


def test_what_a_person_disabled_on_the_machine_no_document_enables(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        Stack(house)
        disable_runner(house.config.data, house.clock.now())
        runner, task = house.start()
        await house.clock.sleep(100)

        assert is_disabled(house.config.data)
        await house.stop(runner, task)

    run_scenario(tmp_path, scenario)


def test_one_refusal_means_nothing_and_two_mean_stop(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        stack = Stack(house)
        runner, task = house.start()
        await house.clock.sleep(10)
        stack.refusals = 1
        await house.clock.sleep(60)
        after_one = is_disabled(house.config.data)
        stack.refusals = 2
        await house.clock.sleep(36)
        after_two = is_disabled(house.config.data)
        await house.clock.sleep(60)

        assert (after_one, after_two) == (False, True)
        assert not is_disabled(house.config.data)
        await house.stop(runner, task)

    house = run_scenario(tmp_path, scenario)

    assert "document_unreadable" in house.audit_events()


def test_a_document_that_is_gone_or_damaged_stops_work_too(tmp_path: Path) -> None:
    for number, text in enumerate(("", "   ", "{", '{"format":1}', write_document(enabled="yes"))):

        async def scenario(house: RunnerHarness, text: str = text) -> None:
            stack = Stack(house)
            runner, task = house.start()
            await house.clock.sleep(10)
            stack.texts[DOCUMENT] = text
            await house.clock.sleep(60)

            assert (house.config.data / ThrownBy.STACK).exists()
            assert stack.watch.problem == "document_unreadable"
            await house.stop(runner, task)

        run_scenario(tmp_path / str(number), scenario)


def test_a_new_machine_waits_for_its_rights_and_takes_no_work_before(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        stack = Stack(house)
        stack.refusals = 20
        runner, task = house.start()
        name = house.control.add_job()
        await house.clock.sleep(100)
        waiting = (stack.why_closed, dict(house.executor.runs), is_disabled(house.config.data))
        await house.clock.sleep(500)

        assert waiting == ("the document of the Stack was not read yet", {}, False)
        expect(house.control.result_of(name), OutcomeState.SUCCEEDED, Reason.COMPLETED)
        await house.stop(runner, task)

    run_scenario(tmp_path, scenario)


def test_out_of_reach_it_first_takes_nothing_new_and_then_stops_changes(tmp_path: Path) -> None:
    seen: dict[str, object] = {}

    async def scenario(house: RunnerHarness) -> None:
        stack = Stack(house)
        runner, task = house.start()
        change, look = house.control.add_job(mutating=True), house.control.add_job()
        await house.clock.sleep(31)
        stack.is_down = True
        await house.clock.sleep(40)
        seen["soon"] = (stack.why_closed, len(house.executor.running))
        await house.clock.sleep(30)
        seen["later"] = (stack.why_closed, house.executor.stopped.get(change))
        seen["look"] = house.executor.stopped[look][0]
        await house.clock.sleep(600)
        seen["at last"] = house.executor.stopped[change][0]
        stack.is_down = False
        await house.clock.sleep(60)
        seen["back"] = (stack.why_closed, is_disabled(house.config.data))
        await house.stop(runner, task)

    run_scenario(tmp_path, scenario, lasts_s=LONG)

    why = "the document of the Stack could not be read for too long"
    assert seen == {
        "soon": ("", 2),
        "later": (why, None),
        "look": Reason.DEADMAN,
        "at last": Reason.DEADMAN,
        "back": ("", False),
    }


def test_a_document_for_newer_runners_changes_nothing(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        stack = Stack(house)
        runner, task = house.start()
        await house.clock.sleep(10)
        stack.say(format=2, enabled="false")
        name = house.control.add_job()
        await house.clock.sleep(60)

        assert stack.watch.problem == "document_unknown"
        assert stack.watch.document is not None
        expect(house.control.result_of(name), OutcomeState.SUCCEEDED, Reason.COMPLETED)
        await house.stop(runner, task)

    run_scenario(tmp_path, scenario)


def test_a_role_that_is_switched_on_counts_within_half_a_minute_and_asks_for_a_report(
    tmp_path: Path,
) -> None:
    async def scenario(house: RunnerHarness) -> None:
        stack = Stack(house)
        stack.say(roles={ROLE: "false"})
        runner, task = house.start()
        await house.clock.sleep(10)
        assert stack.deps is not None
        stack.deps.signals.report_wanted = False
        stack.say(roles={ROLE: "true"})
        await house.clock.sleep(31)

        assert stack.watch.document is not None
        assert stack.watch.document.roles == {ROLE: True}
        assert stack.deps.signals.report_wanted
        await house.stop(runner, task)

    run_scenario(tmp_path, scenario)


def test_after_a_restart_the_last_document_is_known_before_the_cloud_answers(
    tmp_path: Path,
) -> None:
    async def scenario(house: RunnerHarness) -> None:
        Stack(house)
        runner, task = house.start()
        await house.clock.sleep(10)
        await house.stop(runner, task)
        again = Stack(house)
        again.is_down = True
        runner, task = house.start()
        await house.clock.sleep(10)

        assert again.watch.document is not None
        assert again.why_closed
        await house.stop(runner, task)

    run_scenario(tmp_path, scenario)
