import json

import pytest

from tests.unit.cli import samples
from tests.unit.cli.fake_control import DIGEST, WFL, Cli, FakeControl

PATH = f"/v1/workflows/{WFL}"


@pytest.mark.parametrize("verb", ["approve", "deny"])
def test_what_is_answered_is_shown_before_the_question(
    verb: str, cli: Cli, fake: FakeControl
) -> None:
    fake.answer("GET", PATH, samples.workflow(samples.plan(message="3 to add"), samples.gate()))
    fake.answer("POST", f"{PATH}/steps/ok/{verb}", samples.workflow())

    ran = cli("workflows", verb, WFL, "ok", can_ask=True, stdin="yes\n")

    assert ran.code == 0
    assert (
        f"`ok` asks for approval of {DIGEST}, after:\n  plan: succeeded {DIGEST}\n    3 to add\n    add = 3"
        in ran.err
    )
    assert f"{verb.title()} this? [y/N]: " in ran.err
    assert json.loads(fake.requests[-1].content)["digest"] == DIGEST


def test_who_hesitates_approves_nothing(cli: Cli, fake: FakeControl) -> None:
    fake.answer("GET", PATH, samples.workflow())

    ran = cli("workflows", "approve", WFL, "ok", can_ask=True, stdin="\n")

    assert (ran.code, [each.method for each in fake.requests]) == (1, ["GET"])


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("plan", "`plan` does not wait for approval: it is succeeded"),
        ("apply", "`apply` does not wait for approval: it is pending"),
        ("typo", "the workflow has no step `typo`\n\nhint: It has: plan, ok, apply."),
    ],
)
def test_only_an_open_gate_can_be_approved(
    step: str, expected: str, cli: Cli, fake: FakeControl
) -> None:
    fake.answer("GET", PATH, samples.workflow())

    ran = cli("workflows", "approve", WFL, step, can_ask=True, stdin="y\n")

    assert ran.code == 1
    assert f"error: {expected}" in ran.err


def test_a_question_leaves_stdout_to_the_data(cli: Cli, fake: FakeControl) -> None:
    fake.answer("POST", f"{PATH}/cancel", samples.workflow())

    ran = cli("workflows", "cancel", WFL, "--json", can_ask=True, stdin="y\n")

    assert json.loads(ran.out)["id"] == WFL
    assert ran.err == f"Cancel the workflow {WFL}? [y/N]: "


def test_automatic_approval_can_be_switched_off_unasked(cli: Cli, fake: FakeControl) -> None:
    fake.answer("PUT", f"{PATH}/approve-all", samples.workflow())

    ran = cli("workflows", "approve-all", WFL, "--off")

    assert ran.code == 0
    assert json.loads(fake.requests[-1].content) == {"approve_all": False}


def test_outputs_of_an_event_come_from_a_document_and_pairs(cli: Cli, fake: FakeControl) -> None:
    fake.answer("POST", f"{PATH}/steps/dns/event", samples.workflow())

    ran = cli(
        "workflows",
        "event",
        WFL,
        "dns",
        "--outputs",
        "-",
        "--output",
        "ip=::1",
        stdin='{"ttl": 60, "ip": 0}',
    )

    assert ran.code == 0
    assert json.loads(fake.requests[-1].content) == {"outputs": {"ttl": 60, "ip": "::1"}}
