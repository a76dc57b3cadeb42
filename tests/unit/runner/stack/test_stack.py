"""A Stack on its machine: folder, supervisor, rotated log, reports."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from exclave.base.clock import SystemClock
from exclave.base.errors import Conflict
from exclave.base.ids import SeededRandomness
from exclave.base.secrets import Secret
from exclave.client.problems import RemoteProblem, Unreachable
from exclave.runner.secrets.store import FileSecrets
from exclave.runner.stack.folder import NoStack, Refusal, ReportReply, StackFolder
from exclave.runner.stack.phone_home import Reporter
from exclave.runner.stack.rotated_log import RotatedLog
from exclave.runner.stack.supervisor import (
    FINAL_EXIT,
    StackRunning,
    Supervisor,
    acquire_lock,
    find_supervisor,
)
from exclave.runner.stack.systemd import write_unit
from exclave.wire.runner import Poll, PollReply
from exclave.wire.stacks import (
    Leaving,
    ProgramOffer,
    Resigned,
    StackDocument,
    StackInput,
    StackReport,
    StackSecret,
    StackTerms,
)
from tests.unit.runner.fake_control import FakeControl
from tests.unit.runner.harness import RunnerHarness, run_scenario

TERMS = StackTerms(
    install_id="ins_" + "0" * 26,
    install="acme",
    app="shop",
    secrets=[StackSecret(name="db", required=True)],
    inputs=[StackInput(name="zone"), StackInput(name="pin", sensitive=True)],
)


def make_document(**more: Any) -> StackDocument:
    facts: dict[str, Any] = {
        "terms": TERMS,
        "runner_url": "http://r.test",
        "keys": [],
        "version": "1.0",
        "enrolment": "xce_token",
    }
    return StackDocument(**{**facts, **more})


def make_folder(path: Path, **more: Any) -> StackFolder:
    folder = StackFolder(path)
    folder.prepare()
    folder.write_json(folder.fresh, make_document(**more).model_dump(mode="json"))
    return folder


def test_a_folder_takes_over_what_the_script_brought(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "s")

    document = folder.adopt()

    assert document == make_document()
    assert not folder.fresh.exists()
    assert folder.document.stat().st_mode & 0o777 == 0o600
    assert folder.path.stat().st_mode & 0o777 == 0o700


def test_a_folder_without_a_stack_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoStack):
        StackFolder(tmp_path).read_document()


def test_a_folder_belongs_to_one_install(tmp_path: Path) -> None:
    make_folder(tmp_path).adopt()
    other = TERMS.model_copy(update={"install_id": "ins_" + "1" * 26})

    with pytest.raises(Conflict, match="another install"):
        make_folder(tmp_path, terms=other).adopt()


def test_an_identity_is_kept_and_a_refused_one_is_forgotten(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    folder.adopt()
    for name in ("identity.json", "seal.key"):
        (folder.runner / name).write_text("x")

    make_folder(tmp_path)
    kept = folder.adopt()
    folder.write_json(folder.ended, {"message": "revoked"})
    make_folder(tmp_path)
    anew = folder.adopt()

    assert kept.enrolment == ""
    assert anew.enrolment == "xce_token"
    assert not (folder.runner / "identity.json").exists()
    assert (folder.runner / "seal.key").exists()
    assert not folder.ended.exists()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("{", "it is not valid JSON"),
        ("[]", "it is not an object"),
        ('{"port": 80}', "`port` is not a text"),
    ],
)
def test_inputs_of_a_wrong_shape_are_named(tmp_path: Path, content: str, complaint: str) -> None:
    folder = make_folder(tmp_path)
    folder.inputs.write_text(content)

    with pytest.raises(Conflict, match=f"inputs.json` is not readable: {complaint}"):
        folder.read_inputs()


def test_documents_that_are_not_there_say_nothing(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)

    assert (folder.read_inputs(), folder.read_settings()) == ({}, {})
    assert (folder.read_report_reply(), folder.read_refusal()) == (None, None)


def test_a_reply_and_a_refusal_are_read_as_they_were_written(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    reply = ReportReply(ok=False, at="now", digest="d", message="no", hint="ask")

    folder.write_report_reply(reply)
    folder.write_json(folder.ended, {"code": "revoked", "message": "gone", "hint": "enrol"})

    assert folder.read_report_reply() == reply
    assert folder.read_refusal() == Refusal("revoked", "gone", "enrol")


def test_the_launcher_and_the_unit_quote_their_words(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "with blank")
    folder.adopt()

    folder.write_launcher(["/usr/bin/py thon", "-m", "exclave"])

    text = folder.launcher.read_text()
    assert "exec '/usr/bin/py thon' -m exclave \"$@\" --folder '" in text
    assert os.access(folder.launcher, os.X_OK)
    assert "100%%" in write_unit(folder, ["run", "100%"])


def test_a_unit_file_holds_no_line_that_others_wrote(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    document = folder.adopt()
    evil = "acme\nExecStartPre=/bin/evil\n%n"
    terms = document.terms.model_copy(update={"install": evil})
    folder.write_document(document.model_copy(update={"terms": terms}))

    unit = write_unit(folder, ["/opt/my py", 'a"b', "c\\d", "$HOME", "e\nExecStop=f", "it's"])

    lines = unit.splitlines()
    assert "Description=Exclave Stack of acme\\nExecStartPre=/bin/evil\\n%%n" in lines
    assert 'ExecStart="/opt/my py" "a\\"b" "c\\\\d" $$HOME "e\\nExecStop=f" "it\'s"' in lines
    assert [line for line in lines if line.startswith("Exec")] == [lines[6]]


def test_a_log_is_cut_into_few_files(tmp_path: Path) -> None:
    log = RotatedLog(tmp_path / "a.log", most_bytes=10, files=3)

    for number in range(6):
        log.write(f"line {number}\n".encode())
    log.close()

    found = {file.name: file.read_text() for file in tmp_path.iterdir()}
    assert found == {"a.log": "line 5\n", "a.log.1": "line 4\n", "a.log.2": "line 3\n"}


async def supervise(folder: StackFolder, program: str) -> bool:
    argv = [sys.executable, "-c", program, str(folder.path)]
    clock, randomness = SystemClock(), SeededRandomness(1)
    return await Supervisor(folder, argv, clock=clock, randomness=randomness, first_s=0.01).run()


async def test_a_runner_that_dies_is_started_again_until_it_says_that_it_is_over(
    tmp_path: Path,
) -> None:
    folder = make_folder(tmp_path)
    program = (
        "import sys, pathlib; file = pathlib.Path(sys.argv[1]) / 'count';"
        "count = int(file.read_text()) if file.exists() else 0;"
        "file.write_text(str(count + 1)); print('start', count);"
        f"sys.exit({FINAL_EXIT} if count == 2 else 1)"
    )

    assert await supervise(folder, program) is False

    assert (tmp_path / "count").read_text() == "3"
    assert folder.log.read_text() == "start 0\nstart 1\nstart 2\n"
    assert find_supervisor(folder) is None


async def test_a_stack_has_one_supervisor(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    lock = await acquire_lock(folder, SystemClock())

    assert find_supervisor(folder) == os.getpid()
    with pytest.raises(StackRunning):
        await supervise(folder, "raise SystemExit(1)")

    os.close(lock)
    assert find_supervisor(folder) is None


class FakeStackApi:
    """Takes reports, or answers with the problems that it was given."""

    def __init__(self, *problems: Exception) -> None:
        self.reports: list[StackReport] = []
        self.problems = list(problems)
        self.terms = TERMS

    async def report(self, token: str, request: StackReport) -> StackTerms:
        self.reports.append(request)
        if self.problems:
            raise self.problems.pop(0)
        return self.terms

    async def leave(self, token: str, request: Leaving) -> None:
        raise AssertionError("only runners in clouds say that their machine goes")

    async def ask_program(self, token: str) -> ProgramOffer:
        raise AssertionError("only runners in clouds update themselves")

    async def resign(self, token: str) -> Resigned:
        raise AssertionError("no test of the reporter resigns")


def test_a_stack_reports_at_first_after_changes_and_learns_new_terms(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "stack")
    folder.adopt()
    api = FakeStackApi(Unreachable("down"))
    store = FileSecrets(folder.secrets)

    async def scenario(house: RunnerHarness) -> None:
        house.duties = [Reporter(folder, api, store).run]
        runner, task = house.start()
        await house.clock.sleep(40)
        assert [report.secrets for report in api.reports] == [{"db": False}] * 2
        folder.write_json(folder.inputs, {"zone": "b", "pin": "1234", "strange": "x"})
        await store.put("stack-input-pin", Secret("1234"))
        await house.clock.sleep(5)
        assert api.reports[-1].inputs == {"zone": "b"}
        assert api.reports[-1].sensitive_inputs == ["pin"]
        api.terms = TERMS.model_copy(update={"secrets": [StackSecret(name="smtp")]})
        await house.clock.sleep(200)
        await house.stop(runner, task)

    run_scenario(tmp_path, scenario)

    assert api.reports[-1].secrets == {"smtp": False}
    assert folder.read_document().enrolment == ""
    assert "1234" not in "".join(report.model_dump_json() for report in api.reports)


class AsksForReports(FakeControl):
    """Lets every poll ask for a report, and wants no other signs for an hour."""

    async def poll(self, token: str, request: Poll) -> PollReply:
        reply = await super().poll(token, request)
        return reply.model_copy(update={"report": len(self.polls) == 3, "renew_s": 4000.0})


def test_a_stack_of_a_big_fleet_reports_when_it_is_asked_to(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "stack")
    folder.adopt()
    api = FakeStackApi()

    async def scenario(house: RunnerHarness) -> None:
        house.control = AsksForReports(house.clock)
        house.duties = [Reporter(folder, api, FileSecrets(folder.secrets)).run]
        runner, task = house.start()
        await house.clock.sleep(70)
        assert len(api.reports) == 1
        await house.clock.sleep(10)
        assert len(api.reports) == 2
        await house.clock.sleep(3000)
        assert len(api.reports) == 2
        await house.stop(runner, task)

    run_scenario(tmp_path, scenario)


def test_a_refused_report_is_kept_for_the_customer_and_not_repeated(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "stack")
    folder.adopt()
    api = FakeStackApi(RemoteProblem(422, "bad_inputs", "`zone`: no such zone", hint="Try a."))

    async def scenario(house: RunnerHarness) -> None:
        house.duties = [Reporter(folder, api, FileSecrets(folder.secrets)).run]
        runner, task = house.start()
        await house.clock.sleep(60)
        await house.stop(runner, task)

    run_scenario(tmp_path, scenario)

    told = json.loads(folder.reported.read_text())
    assert len(api.reports) == 1
    assert (told["ok"], told["message"], told["hint"]) == (False, "`zone`: no such zone", "Try a.")
