"""Each verb against a control plane in which one field at a time was written by an attacker."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.unit.cli import samples
from tests.unit.cli.fake_control import DIGEST, EXE, INS, JOB, WFL, Cli, FakeControl, Ran
from tests.unit.cli.test_verbs import ROWS
from tests.unit.cli.verbs import Verb
from tests.unit.cli.verbs_terraform import plan

EVIL = "\x1b]0;PWNED\x07\x1b[2J\x9b2J\u202e\u2066\x7f[link=https://evil.example]x[/link]\r"
RAW = ("\x1b]", "\x1b[2J", "\x07", "\x9b", "\u202e", "\u2066", "\x7f", "\r")


def spoil(value: Any) -> Iterator[Any]:
    """Yield copies of a document, each with one text or one more key by the attacker."""
    match value:
        case str():
            yield value + EVIL
        case dict():
            yield {**value, f"key{EVIL}": f"value{EVIL}"}
            for key, each in value.items():
                yield from ({**value, key: bad} for bad in spoil(each))
        case list():
            for at, each in enumerate(value):
                yield from ([*value[:at], bad, *value[at + 1 :]] for bad in spoil(each))


def spoil_answer(answer: Any) -> Iterator[Any]:
    """Yield spoilt copies of an answer; a stream of events is bytes."""
    if isinstance(answer, bytes):
        yield answer.replace(b"hello", json.dumps(f"hello{EVIL}")[1:-1].encode())
    else:
        yield from spoil(answer)


def find_raw(ran: Ran) -> list[str]:
    return [each for each in RAW if each in ran.out or each in ran.err]


def run_spoilt(
    row: Verb, fake: FakeControl, call: Callable[[], Ran]
) -> Iterator[tuple[str, Any, Ran]]:
    for route, answer in row.answers.items():
        for bad in spoil_answer(answer):
            fake.answers.clear()
            row.prepare(fake)
            method, path = route.split()
            fake.answers.pop((method, path))
            if isinstance(bad, bytes):
                fake.stream(path, bad)
            else:
                fake.answer(method, path, bad)
            yield route, bad, call()


@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "pipe"])
@pytest.mark.parametrize(("name", "row"), ROWS)
def test_no_field_of_an_answer_reaches_the_terminal_raw(
    name: str, row: Verb, cli: Cli, fake: FakeControl, *, terminal: bool
) -> None:
    def call() -> Ran:
        words = [*name.split(), *row.argv.split()]
        return cli(*words, stdin=row.stdin, env=row.env, terminal=terminal)

    assert [(route, bad) for route, bad, ran in run_spoilt(row, fake, call) if find_raw(ran)] == []


@pytest.mark.parametrize(("name", "row"), ROWS)
def test_json_for_a_terminal_has_escapes_and_is_still_json(
    name: str, row: Verb, cli: Cli, fake: FakeControl
) -> None:
    def call() -> Ran:
        words = [*name.split(), *row.argv.split(), "--json"]
        return cli(*words, stdin=row.stdin, env=row.env, terminal=True)

    for route, bad, ran in run_spoilt(row, fake, call):
        assert find_raw(ran) == [], (route, bad)
        if ran.code == 0:
            documents = ran.out.splitlines() if row.lines else [ran.out]
            assert all(isinstance(json.loads(each), dict) for each in documents)


@pytest.mark.parametrize("more", [(), ("--json",)], ids=["text", "json"])
@pytest.mark.parametrize(("name", "row"), [row for row in ROWS if row.id != "auth-logout"])
def test_a_refusal_of_the_server_reaches_the_terminal_cleaned(
    name: str, row: Verb, cli: Cli, fake: FakeControl, more: tuple[str, ...]
) -> None:
    for route in [*row.answers, "GET /v1/installs"]:
        method, path = route.split()
        fake.refuse(method, path, 409, f"code{EVIL}", f"detail{EVIL}", f"hint{EVIL}")

    ran = cli(*name.split(), *row.argv.split(), *more, stdin=row.stdin, env=row.env, terminal=True)

    assert (ran.code, find_raw(ran)) == (1, [])


def test_markup_in_an_answer_is_text(cli: Cli, fake: FakeControl) -> None:
    evil = samples.workflow(samples.step("plan", "failed", message="[red]x[/red] [link=a]b[/link]"))
    fake.answer("GET", f"/v1/workflows/{WFL}", evil | {"state": "failed"})

    shown = cli("workflows", "watch", WFL, terminal=True)

    assert "[red]x[/red] [link=a]b[/link]" in shown.out


def test_what_is_approved_is_shown_cleaned_and_cannot_forge_a_line(
    cli: Cli, fake: FakeControl
) -> None:
    forged = f"{EVIL}\nPlan: nothing to do."
    hostile = plan() | {
        "drift": [{"address": forged, "type": "a", "name": "b", "action": "update"}],
        "resources": [
            {
                "address": forged,
                "type": "a",
                "name": "b",
                "action": "delete",
                "previous": forged,
                "attributes": [{"path": forged, "before": forged}],
            }
        ],
        "outputs": [{"name": forged, "action": "create", "after": forged}],
        "policies": [{"name": forged, "level": "warn", "message": forged}],
        "summary": {"destroy": 1},
    }
    done = samples.step("plan", "succeeded", job_id=JOB, outputs={"digest": DIGEST})
    gate = samples.step("ok", "active", kind="gate", needs=("plan",), digest=DIGEST)
    fake.answer("GET", f"/v1/workflows/{WFL}", samples.workflow(done, gate))
    fake.answer("GET", f"/v1/jobs/{JOB}/attachments/plan.json", hostile)

    ran = cli("workflows", "approve", WFL, "ok", can_ask=True, terminal=True, stdin="n\n")

    assert find_raw(ran) == []
    assert "Plan: nothing to do." in ran.err
    assert not any(line.startswith("Plan: nothing") for line in ran.err.splitlines())
    assert "Plan: 1 to destroy." in ran.err


def test_a_hostile_newline_does_not_leave_a_comment(cli: Cli, fake: FakeControl) -> None:
    lost = {
        "workspace": "sandbox",
        "address": "a.b\nmodule {}",
        "type": "a",
        "job_id": JOB,
        "certainty": "unknown",
        "execution_id": EXE,
    }
    fake.answer("GET", f"/v1/installs/{INS}/orphans", {"orphans": [lost]})

    ran = cli("installs", "orphans", INS, terminal=True)

    assert ran.out.startswith("# sandbox: a.b\\nmodule {}, by job")
