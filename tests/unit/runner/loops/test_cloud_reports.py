"""What a runner in a cloud reports: what is applied, never a value of a secret."""

from pathlib import Path

import pytest

from exclave import __version__
from exclave.base.clock import Clock
from exclave.client.problems import RemoteProblem
from exclave.runner.cloud.document_file import DocumentFile
from exclave.runner.cloud.exchange import CloudRefused
from exclave.runner.cloud.imds import Machine
from exclave.runner.cloud.stores import CloudSecrets
from exclave.runner.executions.deps import Deps
from exclave.runner.loops.cloud_reports import CloudReporter
from exclave.runner.loops.document_watch import DocumentWatch
from exclave.wire.stacks import Cloud, Leaving, ProgramOffer, Resigned, StackReport, StackTerms
from tests.unit.runner.cloud.cloud_kit import (
    ROLE,
    FakeAccount,
    StepClock,
    read_document,
    write_document,
)
from tests.unit.runner.harness import RunnerHarness, run_scenario

DIGEST = "d" * 64
DOCUMENT = "document-arn"


class Api:
    """The control plane's side of reports."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.reports: list[tuple[float, StackReport]] = []
        self.problem: RemoteProblem | None = None
        self.farewells: list[Leaving] = []
        self.is_deaf = False

    async def report(self, token: str, request: StackReport) -> StackTerms:
        self.reports.append((self.clock.monotonic(), request))
        if self.problem is not None:
            raise self.problem
        return StackTerms(install_id=f"ins_{'0' * 26}", install="acme", app="shop")

    async def leave(self, token: str, request: Leaving) -> None:
        if self.is_deaf:
            await self.clock.sleep(10_000)
        if self.problem is not None:
            problem, self.problem = self.problem, None
            raise problem
        self.farewells.append(request)

    async def ask_program(self, token: str) -> ProgramOffer:
        raise NotImplementedError

    async def resign(self, token: str) -> Resigned:
        raise NotImplementedError


class Reports:
    """A runner whose Stack's document is read and reported."""

    def __init__(self, house: RunnerHarness) -> None:
        self.account = FakeAccount(StepClock(), texts={"db-arn": "hush"})
        self.account.texts[DOCUMENT] = write_document(digest=DIGEST)
        self.watch = DocumentWatch(self.account, DOCUMENT, DocumentFile(house.config.data))
        self.api = Api(house.clock)
        self.machine: Machine | None = Machine("i-1", "eu-west-1a", "ami-1", "t3.medium")
        store = CloudSecrets(self.account, self.watch.get_document, str)
        self.is_ending: bool | None = False
        self.reporter = CloudReporter(
            Cloud.AWS,
            self.api,
            self.watch,
            store,
            self.read_machine,
            self.read_ending,
            lambda: "the new one failed",
        )
        self.deps: Deps | None = None
        house.duties = [self._note, self.watch.run, self.reporter.run]
        house.leave = self.reporter.leave

    async def _note(self, deps: Deps) -> None:
        self.deps = deps

    async def read_machine(self) -> Machine:
        if self.machine is None:
            raise CloudRefused("the metadata server does not answer")
        return self.machine

    async def read_ending(self) -> bool:
        if self.is_ending is None:
            raise CloudRefused("the metadata server does not answer")
        return self.is_ending


def test_a_report_has_what_is_applied_and_no_value_of_a_secret(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        reports = Reports(house)
        runner, task = house.start()
        await house.clock.sleep(10)
        _, report = reports.api.reports[0]
        await house.stop(runner, task)

        assert report.document is not None
        assert (report.document.digest, report.document.format) == (DIGEST, 1)
        assert (report.mode, report.enabled, report.roles[ROLE]) == ("full", True, True)
        assert report.secrets == {"db": True}
        assert report.inputs == {"domain": "acme.example"}
        assert report.outputs["db_arn"] == "db-arn"
        assert report.machine is not None
        assert (report.machine.id, report.machine.type) == ("i-1", "t3.medium")
        assert report.program is not None
        assert (report.program.version, report.program.updates) == (__version__, "auto")
        assert report.program.problem == "the new one failed"
        assert "hush" not in report.model_dump_json()

    run_scenario(tmp_path, scenario)


def test_a_change_is_reported_within_half_a_minute_and_silence_every_minute(
    tmp_path: Path,
) -> None:
    async def scenario(house: RunnerHarness) -> None:
        reports = Reports(house)
        runner, task = house.start()
        await house.clock.sleep(10)
        reports.account.texts[DOCUMENT] = write_document(digest="e" * 64, enabled="false")
        await house.clock.sleep(32)
        changed = reports.api.reports[-1][1]
        before = len(reports.api.reports)
        await house.clock.sleep(130)
        await house.stop(runner, task)

        assert (changed.document and changed.document.digest, changed.enabled) == ("e" * 64, False)
        assert len(reports.api.reports) - before == 2

    run_scenario(tmp_path, scenario)


def test_a_stack_that_denies_everything_is_reported_as_disabled_and_later_as_enabled(
    tmp_path: Path,
) -> None:
    async def scenario(house: RunnerHarness) -> None:
        reports = Reports(house)
        runner, task = house.start()
        await house.clock.sleep(10)
        reports.account.denied = True
        await house.clock.sleep(40)
        stopped = reports.api.reports[-1][1]
        reports.account.denied = False
        await house.clock.sleep(35)
        started = reports.api.reports[-1][1]
        await house.stop(runner, task)

        assert (stopped.enabled, stopped.secrets) == (False, {"db": True})
        assert stopped.document == started.document
        assert started.enabled

    run_scenario(tmp_path, scenario)


def test_a_poll_that_asks_for_a_report_gets_the_document_as_it_is_now(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        reports = Reports(house)
        runner, task = house.start()
        await house.clock.sleep(10)
        reports.account.texts[DOCUMENT] = write_document(digest="e" * 64)
        assert reports.deps is not None
        reports.deps.signals.report_wanted = True
        await house.clock.sleep(2)
        newest = reports.api.reports[-1][1].document
        await house.stop(runner, task)

        assert newest is not None
        assert newest.digest == "e" * 64

    run_scenario(tmp_path, scenario)


def test_a_machine_that_does_not_know_itself_reports_all_the_same(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        reports = Reports(house)
        reports.machine = None
        runner, task = house.start()
        await house.clock.sleep(10)
        await house.stop(runner, task)

        assert reports.api.reports[0][1].machine is None

    run_scenario(tmp_path, scenario)


async def test_other_clouds_name_their_references_otherwise(tmp_path: Path) -> None:
    house = RunnerHarness(tmp_path)
    reports = Reports(house)
    document = read_document(digest=DIGEST)
    for cloud, name in ((Cloud.AZURE, "db_secret_id"), (Cloud.GCP, "db_secret_name")):
        store = CloudSecrets(reports.account, lambda: document, str)
        reporter = CloudReporter(
            cloud, reports.api, reports.watch, store, reports.read_machine, reports.read_ending
        )

        report = await reporter.build_report(document)

        assert report.outputs[name] == "db-arn"


@pytest.mark.parametrize(
    ("is_ending", "reason"), [(True, "terminating"), (False, "stopping"), (None, "stopping")]
)
def test_a_runner_that_stops_says_why_and_reports_nothing_afterwards(
    tmp_path: Path, is_ending: bool | None, reason: str
) -> None:
    async def scenario(house: RunnerHarness) -> None:
        reports = Reports(house)
        runner, task = house.start()
        await house.clock.sleep(10)
        reports.is_ending = is_ending
        reports.api.problem = RemoteProblem(503, "busy", "try again")
        before = len(reports.api.reports)
        await house.stop(runner, task)

        assert [leaving.reason for leaving in reports.api.farewells] == [reason]
        assert len(reports.api.reports) == before

    house = run_scenario(tmp_path, scenario)

    assert house.audit_events()[-2:] == ["leaving_announced", "stopped"]


def test_a_control_plane_that_does_not_answer_keeps_no_machine_from_going(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        reports = Reports(house)
        runner, task = house.start()
        await house.clock.sleep(10)
        reports.api.is_deaf = True
        began = house.clock.monotonic()
        await house.stop(runner, task)

        assert house.clock.monotonic() - began < 20

    house = run_scenario(tmp_path, scenario)

    assert "leaving_announced" not in house.audit_events()
