import json
import signal
from typing import Any

import httpx
import pytest

from tests.unit.cli import samples
from tests.unit.cli.fake_control import AT, DIGEST, EXE, INS, JOB, WFL, Cli, FakeControl, event

PATH = f"/v1/workflows/{WFL}"
LOG = f"/v1/jobs/{JOB}/logs/stream"


def change(workflow: dict[str, Any]) -> bytes:
    return event("workflow", json.dumps(workflow))


def line(n: int, text: str, **more: Any) -> bytes:
    return event("record", json.dumps(samples.record(n, text, **more)), f"{EXE}:{(n + 1) * 10}")


def play(fake: FakeControl, ending: str = "succeeded", **more: Any) -> None:
    """A plan that runs, prints two lines and ends, then a gate that is approved."""
    running = samples.workflow(samples.plan("running"), samples.gate("pending"))
    asking = samples.workflow(samples.plan(), samples.gate(), revision=2)
    final = samples.workflow(
        samples.plan(ending, **more), samples.gate(ending), state=ending, revision=3
    )
    fake.answer("GET", PATH, running)
    fake.answer("GET", PATH, final)
    fake.stream(
        f"{PATH}/stream", b": hi\n\n", change(running), change(asking), change(final), event("end")
    )
    fake.stream(LOG, line(0, "Plan: 3 to add"), line(1, "done"), event("end"))


def test_steps_and_their_logs_are_told_as_lines(cli: Cli, fake: FakeControl) -> None:
    play(fake)

    ran = cli("workflows", "watch", WFL)

    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0] == "03:04:05 plan ● running"
    assert "03:04:17 plan ✓ succeeded" in lines
    assert "03:04:05 ok   ● waits for approval" in lines
    assert "03:04:05 plan | Plan: 3 to add" in lines
    assert lines[-1] == "03:04:25 workflow deploy succeeded in 20s"
    assert f"To approve: exclave workflows approve {WFL} ok --digest {DIGEST}" in ran.err


def test_each_line_of_json_is_an_event(cli: Cli, fake: FakeControl) -> None:
    play(fake)

    ran = cli("workflows", "watch", WFL, "--json")

    events = [json.loads(each) for each in ran.out.splitlines()]
    assert {each["event"] for each in events} == {"step", "log", "end"}
    assert [each["record"]["text"] for each in events if each["event"] == "log"] == [
        "Plan: 3 to add",
        "done",
    ]
    assert events[-1]["workflow"]["state"] == "succeeded"
    assert ran.err == ""


@pytest.mark.parametrize("ending", ["failed", "cancelled"])
def test_a_workflow_that_does_not_succeed_ends_with_one(
    ending: str, cli: Cli, fake: FakeControl
) -> None:
    play(fake, ending)

    ran = cli("workflows", "watch", WFL)

    assert ran.code == 1


def test_a_failure_is_told_with_its_reason_and_the_ways_on(cli: Cli, fake: FakeControl) -> None:
    play(fake, "failed", reason="exit_code", message="`terraform` ended with 1")

    ran = cli("workflows", "watch", WFL)

    assert "Step `plan` failed: exit_code: `terraform` ended with 1" in ran.err
    assert f"hint: `exclave workflows retry {WFL} plan` tries it again" in ran.err


def test_a_denied_plan_is_not_to_be_skipped(cli: Cli, fake: FakeControl) -> None:
    play(fake, "failed", reason="policy_denied", message="no public buckets")

    ran = cli("workflows", "watch", WFL)

    assert "the plan breaks a policy of the app" in ran.err
    assert "workflows skip" not in ran.err


def test_a_lost_step_is_looked_at_before_it_is_tried_again(cli: Cli, fake: FakeControl) -> None:
    apply = samples.step("apply", "lost", lanes=["component:db"], reason="runner_restarted")
    final = samples.workflow(apply, state="failed")
    fake.answer("GET", PATH, final)
    fake.stream(f"{PATH}/stream")

    ran = cli("workflows", "watch", WFL)

    assert f"exclave installs orphans {INS}." in ran.err
    assert f"exclave installs release-lane {INS} component:db --reason" in ran.err
    assert f"After that `exclave workflows retry {WFL} apply`" in ran.err


def test_logs_of_steps_that_were_over_before_are_not_repeated(cli: Cli, fake: FakeControl) -> None:
    fake.answer("GET", PATH, samples.workflow(samples.plan(), state="succeeded"))

    ran = cli("workflows", "watch", WFL)

    assert ran.code == 0
    assert fake.sent("GET", LOG) == []


def test_running_with_watch_shows_even_a_step_that_ended_at_once(
    cli: Cli, fake: FakeControl
) -> None:
    text = json.dumps(
        {
            "name": "deploy",
            "queue_id": INS,
            "steps": [{"name": "plan", "job": {"kind": "noop"}}],
        }
    )
    fake.answer("POST", "/v1/workflows", samples.workflow(samples.step("plan")), 202)
    fake.answer("GET", PATH, samples.workflow(samples.plan(), state="succeeded", revision=2))
    fake.stream(LOG, line(0, "quick"), event("end"))

    ran = cli("workflows", "run", "-", "--watch", stdin=text)

    assert ran.code == 0
    assert "03:04:05 plan | quick" in ran.out


def test_an_outage_in_between_is_mentioned_and_survived(cli: Cli, fake: FakeControl) -> None:
    running = samples.workflow(samples.step("plan", "active"))
    fake.answer("GET", PATH, running)
    for _ in range(8):
        fake.add("GET", PATH, httpx.ConnectError("refused"))
    fake.answer(
        "GET",
        PATH,
        samples.workflow(samples.step("plan", "succeeded"), state="succeeded", revision=2),
    )
    fake.stream(f"{PATH}/stream", change(running), httpx.ReadError("cut"))

    ran = cli("workflows", "watch", WFL)

    assert ran.code == 0
    assert ran.err.count("warning: cannot reach") == 1


def test_a_log_that_cannot_be_read_does_not_end_the_watching(cli: Cli, fake: FakeControl) -> None:
    play(fake)
    fake.answers[("GET", LOG)] = []
    fake.refuse("GET", LOG, 403, "forbidden", "you may not read logs")

    ran = cli("workflows", "watch", WFL)

    assert ran.code == 0
    assert "warning: no log of `plan`: you may not read logs" in ran.err


def test_an_interrupt_stops_only_the_watching(cli: Cli, fake: FakeControl) -> None:
    class Interrupting(httpx.AsyncByteStream):
        async def __aiter__(self) -> Any:
            signal.raise_signal(signal.SIGINT)
            yield change(samples.workflow(samples.plan("running")))

    fake.answer("GET", PATH, samples.workflow(samples.step("plan", "active")))
    headers = {"Content-Type": "text/event-stream"}
    fake.add("GET", f"{PATH}/stream", httpx.Response(200, headers=headers, stream=Interrupting()))

    ran = cli("workflows", "watch", WFL)

    assert ran.code == 130
    assert "Stopped watching; the workflow continues." in ran.err
    assert f"exclave workflows cancel {WFL}" in ran.err
    assert [each.method for each in fake.requests if each.method != "GET"] == []


def test_a_terminal_gets_a_graph_below_the_lines(cli: Cli, fake: FakeControl) -> None:
    play(fake)

    ran = cli("workflows", "watch", WFL, terminal=True)

    assert ran.code == 0
    assert "plan | Plan: 3 to add" in ran.out
    assert "deploy  succeeded · 2 of 2 steps done · 20s" in ran.out
    assert "↓ ✓ ok" in ran.out


def test_a_graph_higher_than_the_terminal_shows_what_is_open(
    cli: Cli, fake: FakeControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINES", "10")
    steps = [samples.step(f"done-{n}", "succeeded") for n in range(20)]
    broken = samples.step("broken", "failed", reason="timeout", started_at=AT)
    fake.answer("GET", PATH, samples.workflow(*steps, broken, state="failed"))

    ran = cli("workflows", "watch", WFL, terminal=True)

    graph = ran.out[ran.out.rindex("deploy  failed") :]
    assert "broken" in graph
    assert "done-3" not in graph
