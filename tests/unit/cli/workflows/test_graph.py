from datetime import timedelta
from typing import Any

from exclave.cli.terminal import clean
from exclave.cli.workflows.graph import draw_graph
from exclave.wire.workflows import WorkflowReply
from tests.unit.cli import samples
from tests.unit.cli.fake_control import AT, DIGEST, INS, NOW, WFL, Cli, FakeControl


def draw(*steps: dict[str, Any]) -> str:
    workflow = WorkflowReply.model_validate(samples.workflow(*steps))
    lines = draw_graph(workflow, NOW + timedelta(seconds=75), lambda _, text: clean(text))
    return "\n".join(lines)


def test_parallel_steps_branch_and_chains_stay_flat() -> None:
    drawn = draw(
        samples.step("fetch", "succeeded", started_at=AT, finished_at=AT),
        samples.step("plan-a", "active", needs=("fetch",), job_state="running", started_at=AT),
        samples.step("apply-a", needs=("plan-a",)),
        samples.step("plan-b", "failed", needs=("fetch",), reason="exit_code", attempt=2),
        samples.step("apply-b", "cancelled", needs=("plan-b",)),
        samples.step("smoke", needs=("apply-a", "apply-b"), blocked_by=samples.blocker()),
        samples.step("notify", "skipped"),
    )

    assert drawn == "\n".join(  # noqa: FLY002 - one line of the picture per line
        [
            "✓ fetch  succeeded · 0s",
            "├─ ● plan-a  running · 1m15s",
            "│  ↓ ○ apply-a  pending",
            "└─ ✗ plan-b  failed: exit_code · try 2",
            "   ↓ ⊘ apply-b  cancelled",
            "   ↓ ○ smoke  pending: lane sandbox is in use by job x · also needs apply-a",
            "↷ notify  skipped",
        ]
    )


def test_waiting_steps_say_for_what() -> None:
    drawn = draw(
        samples.step("ok", "active", kind="gate"),
        samples.step("dns", "active", kind="wait"),
        samples.step("nap", "active", kind="timer", due_at=AT),
        samples.step("job", "active", job_state="queued", waiting_for="a runner"),
        samples.step("held", "active", job_state="queued", blocked_by=samples.blocker()),
        samples.step("gone", "lost", reason="runner_silent"),
    )

    assert drawn.splitlines() == [
        "● ok  waits for approval",
        "● dns  waits for an event",
        "● nap  waits until 2030-01-02 03:04:05Z",
        "● job  queued, waits for a runner",
        "● held  queued: lane sandbox is in use by job x",
        "? gone  lost: runner_silent",
    ]


def test_a_thousand_steps_in_a_chain_are_drawn() -> None:
    steps = [samples.step("s0")]
    steps += [samples.step(f"s{n}", needs=(f"s{n - 1}",)) for n in range(1, 1000)]

    assert len(draw(*steps).splitlines()) == 1000


def test_a_workflow_is_shown_whole(cli: Cli, fake: FakeControl) -> None:
    fake.answer("GET", f"/v1/workflows/{WFL}", samples.workflow() | {"plan_only": True})

    ran = cli("workflows", "get", WFL)

    assert (
        ran.out
        == f"""\
name     deploy
id       {WFL}
state    running
queue    {INS}
flags    plan-only
by       ada
created  2030-01-02 03:04:05Z

✓ plan  succeeded · 12s
↓ ● ok  waits for approval · 0s
↓ ○ apply  pending

`ok` asks for approval of {DIGEST}
"""
    )


def test_colours_are_for_terminals_that_want_them(cli: Cli, fake: FakeControl) -> None:
    fake.answer("GET", f"/v1/workflows/{WFL}", samples.workflow())
    env = {"EXCLAVE_URL": "http://control.test", "EXCLAVE_TOKEN": "t"}

    assert "\x1b[" in cli("workflows", "get", WFL, terminal=True, env=env).out
    assert (
        "\x1b[" not in cli("workflows", "get", WFL, terminal=True, env=env | {"NO_COLOR": "1"}).out
    )
    assert "\x1b[" not in cli("workflows", "get", WFL, env=env).out
