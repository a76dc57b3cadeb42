import json
import os
import subprocess
import sys

import httpx
import pytest

from exclave.base.errors import Kind
from exclave.cli.errors import EXIT_CODES
from exclave.cli.root import LazyCommand, build_root, run
from tests.unit.cli import samples
from tests.unit.cli.fake_control import DIGEST, INS, JOB, TOK, WFL, Cli, FakeControl


def test_every_kind_of_problem_has_an_exit_code() -> None:
    assert set(EXIT_CODES) == set(Kind)


def test_a_missing_thing_is_told_with_its_hint(cli: Cli, fake: FakeControl) -> None:
    fake.refuse("GET", f"/v1/jobs/{JOB}", 404, "not_found", "there is no such job", "Check the id.")

    ran = cli("jobs", "get", JOB)

    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "error: there is no such job\n\nhint: Check the id.\n"


def test_a_conflict_in_json_mode_is_json_on_stderr(cli: Cli, fake: FakeControl) -> None:
    path = f"/v1/workflows/{WFL}/steps/ok/approve"
    body = {
        "title": "x",
        "status": 409,
        "code": "digest_stale",
        "detail": "the plan is newer",
        "now": DIGEST,
    }
    fake.answer("POST", path, body, 409)

    ran = cli("workflows", "approve", WFL, "ok", "--digest", DIGEST, "--json")

    assert (ran.code, ran.out) == (1, "")
    assert json.loads(ran.err) == {
        "error": {
            "code": "digest_stale",
            "kind": "conflict",
            "facts": {"now": DIGEST},
            "message": "the plan is newer",
            "hint": "",
        }
    }


def test_a_refusal_of_the_input_is_a_usage_error(cli: Cli, fake: FakeControl) -> None:
    fake.refuse("POST", "/v1/installs", 422, "invalid_input", "the name is taken")

    ran = cli("installs", "create", "--name", "customer-one")

    assert ran.code == 2


def test_an_unreachable_server_is_named_with_what_to_check(cli: Cli, fake: FakeControl) -> None:
    refused = httpx.ConnectError("All connection attempts failed")
    refused.__cause__ = ConnectionRefusedError()
    fake.add("GET", "/v1/runners", refused)

    ran = cli("runners", "list")

    assert ran.code == 1
    assert "error: cannot reach http://control.test (refused)" in ran.err
    assert "\n\nhint: Nothing listens there" in ran.err


def test_a_stranger_at_the_address_is_noticed_at_once(cli: Cli, fake: FakeControl) -> None:
    fake.add("GET", "/v1/runners", httpx.Response(404, text="<h1>nginx</h1>"))

    ran = cli("runners", "list")

    assert (ran.code, len(fake.requests)) == (1, 1)
    assert "not by an Exclave server" in ran.err


def test_an_answer_of_another_shape_is_no_bug_of_ours(cli: Cli, fake: FakeControl) -> None:
    fake.answer("GET", "/v1/runners", {"runners": []})

    ran = cli("runners", "list")

    assert ran.code == 1
    assert "returned a body that is not a valid `Page[RunnerReply]`" in ran.err


def test_a_bug_ends_with_three_and_no_traceback(
    cli: Cli, fake: FakeControl, capsys: pytest.CaptureFixture[str]
) -> None:
    root = build_root({"broken": LazyCommand("exclave.cli.errors", "OK", "Not a command.")})

    code = run(root, ["broken"], {})

    err = capsys.readouterr().err
    assert code == 3
    assert "error: this is a bug in exclave: TypeError" in err
    assert "EXCLAVE_DEBUG=1" in err
    assert "Traceback" not in err


def test_a_bug_shows_its_traceback_to_those_who_ask(capsys: pytest.CaptureFixture[str]) -> None:
    root = build_root({"broken": LazyCommand("exclave.cli.errors", "OK", "Not a command.")})

    code = run(root, ["broken"], {"EXCLAVE_DEBUG": "1"})

    assert code == 3
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["runnes", "list"], "There is no command `exclave runnes`. Did you mean `runners`?"),
        (["runners", "lst"], "There is no command `exclave runners lst`. Did you mean `list`?"),
        (["runners", "enrol"], "pass --install NAME or --build"),
        (["runners", "enrol", "--install", "a", "--build"], "not both"),
        (["runners", "revoke", "run_1"], "Missing option '--reason'"),
        (["runners", "list", "--limit", "0"], "'--limit'"),
        (["jobs", "list", "--state", "odd"], "'--state'"),
        (
            ["jobs", "declare-lost", JOB, "--reason", "x", "--yes"],
            "reason: String should have at least 3",
        ),
        (["logs", "search", "text"], "pass --job ID, --install NAME or --build"),
        (["tokens", "create", "ci", "--expires-in", "soon"], "`soon` is not a duration"),
        (["tokens", "create", "No Such Name"], "name: String should match pattern"),
        (["installs", "create", "--name", "a", "--label", "tier"], "`tier` is not a key=value"),
        (
            ["installs", "create", "--name", "a", "--label", "x=1", "--label", "x=2"],
            "`x` is given twice",
        ),
        (
            ["workflows", "approve", WFL, "ok", "--digest", "abc"],
            "digest: String should match pattern",
        ),
        (
            ["auth", "login", "--url", "control.test", "--token", "x"],
            "`control.test` is not a URL",
        ),
    ],
)
def test_bad_input_is_a_usage_error(
    argv: list[str], expected: str, cli: Cli, fake: FakeControl
) -> None:
    ran = cli(*argv)

    assert (ran.code, ran.out) == (2, "")
    assert expected in ran.err
    assert fake.requests == []


@pytest.mark.parametrize(
    "argv",
    [
        ["tokens", "revoke", TOK],
        ["runners", "revoke", "run_1", "--reason", "stolen"],
        ["installs", "release-lane", INS, "sandbox", "--reason", "checked"],
        ["jobs", "cancel", JOB],
        ["jobs", "declare-lost", JOB, "--reason", "burnt"],
        ["workflows", "cancel", WFL],
        ["workflows", "approve-all", WFL],
        ["workflows", "approve", WFL, "ok"],
        ["workflows", "deny", WFL, "ok"],
        ["auth", "login"],
    ],
)
def test_nobody_is_asked_without_a_terminal(argv: list[str], cli: Cli, fake: FakeControl) -> None:
    ran = cli(*argv, stdin="y\n")

    assert (ran.code, ran.out, fake.requests) == (2, "", [])
    assert "there is no terminal to ask" in ran.err
    assert "hint: " in ran.err


def test_who_says_no_changes_nothing(cli: Cli, fake: FakeControl) -> None:
    ran = cli("tokens", "revoke", TOK, can_ask=True, stdin="n\n")

    assert (ran.code, ran.out, fake.requests) == (1, "", [])
    assert ran.err == f"Revoke the token {TOK}? [y/N]: Aborted; nothing was changed.\n"


def test_who_says_yes_gets_it(cli: Cli, fake: FakeControl) -> None:
    fake.answer("DELETE", f"/v1/tokens/{TOK}", samples.revoked_token())

    ran = cli("tokens", "revoke", TOK, can_ask=True, stdin="y\n")

    assert ran.code == 0
    assert len(fake.requests) == 1


def test_text_of_others_cannot_command_the_terminal(cli: Cli, fake: FakeControl) -> None:
    evil = samples.audit() | {"actor": "ada\x1b]0;owned\x07\nroot"}
    fake.answer("GET", "/v1/audit", samples.page(evil))

    ran = cli("audit", "list", terminal=True)

    assert "\x1b]0" not in ran.out
    assert "ada\\x1b]0;owned\\x07 root" in ran.out


def test_a_reader_that_leaves_the_pipe_causes_no_traceback() -> None:
    code = (
        "import sys, click\n"
        "from exclave.cli.root import build_root, run\n"
        "root = build_root()\n"
        "root.callback = lambda: [click.echo('x' * 100_000) for _ in range(100)]\n"
        "root.invoke_without_command = True\n"
        "root.no_args_is_help = False\n"
        "sys.exit(run(root, [], {}))\n"
    )
    read, write = os.pipe()
    os.close(read)

    done = subprocess.run(
        [sys.executable, "-c", code], stdout=write, stderr=subprocess.PIPE, check=False
    )

    os.close(write)
    assert (done.returncode, done.stderr) == (1, b"")
