import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from exclave.base.errors import Problem
from exclave.client.control import ControlClient
from exclave.client.problems import RemoteProblem, UnexpectedReply, Unreachable
from exclave.client.sse import ServerEvent, read_events
from tests.unit.cli import samples
from tests.unit.cli.fake_control import EXE, JOB, WFL, FakeControl, event, make_id

FLOW = f"/v1/workflows/{WFL}"
LOGS = f"/v1/jobs/{JOB}/logs"
STREAM = f"{LOGS}/stream"


def line(n: int, text: str, **more: Any) -> bytes:
    record = samples.record(n, text, **more)
    return event("record", json.dumps(record), f"{record['execution_id']}:{record['offset']}")


def change(revision: int, state: str = "running") -> bytes:
    return event("workflow", json.dumps(samples.workflow(state=state, revision=revision)))


async def read_log(client: ControlClient) -> list[str]:
    return [record.text async for record in client.logs.follow(JOB)]


async def read_flow(client: ControlClient) -> list[int]:
    return [each.revision async for each in client.workflows.follow(WFL)]


async def parse(*pieces: bytes) -> list[ServerEvent]:
    async def give() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    return [found async for found in read_events(give())]


async def test_events_survive_any_borders_and_line_ends() -> None:
    whole = 'event: a\r\nid: 7\r\ndata: {"x": "\u2028\x85é"}\r\n\r\n: hi\n\ndata: 1\ndata: 2\n\ndata: cut'.encode()
    expected = [
        ServerEvent("a", '{"x": "\u2028\x85é"}', "7"),
        ServerEvent("comment"),
        ServerEvent("message", "1\n2"),
    ]

    assert await parse(whole) == expected
    assert await parse(*[bytes([byte]) for byte in whole]) == expected


async def test_a_log_is_resumed_after_a_cut_without_gap_or_repeat(
    client: ControlClient, fake: FakeControl
) -> None:
    fake.stream(STREAM, line(0, "a"), line(1, "b"), httpx.ReadError("cut"))
    fake.stream(STREAM, line(1, "b"), line(2, "c"))
    fake.stream(STREAM, line(3, "d"), event("end"))

    assert await read_log(client) == ["a", "b", "c", "d"]
    sent = [each.headers.get("Last-Event-ID") for each in fake.requests]
    assert sent == [None, f"{EXE}:20", f"{EXE}:30"]


async def test_a_second_execution_starts_its_own_offsets(
    client: ControlClient, fake: FakeControl
) -> None:
    second = make_id("exe", 2)
    fake.stream(STREAM, line(5, "first try"), line(0, "again", execution_id=second), event("end"))

    assert await read_log(client) == ["first try", "again"]


async def test_a_log_survives_a_restart_of_the_server(
    client: ControlClient, fake: FakeControl
) -> None:
    troubles: list[Problem] = []
    fake.stream(STREAM, line(0, "a"), httpx.RemoteProtocolError("closed"))
    for _ in range(20):
        fake.add("GET", STREAM, httpx.ConnectError("refused"))
    fake.add("GET", STREAM, httpx.Response(502, text="bad gateway"))
    fake.stream(STREAM, line(1, "b"), event("end"))

    texts = [record.text async for record in client.logs.follow(JOB, on_outage=troubles.append)]

    assert texts == ["a", "b"]
    assert len(troubles) == 1
    assert isinstance(troubles[0], Unreachable)


async def test_a_server_that_never_answered_is_not_waited_for(
    client: ControlClient, fake: FakeControl
) -> None:
    fake.add("GET", STREAM, httpx.ConnectError("refused"))

    with pytest.raises(Unreachable):
        await read_log(client)


async def test_an_endless_outage_ends_the_following(
    client: ControlClient, fake: FakeControl
) -> None:
    fake.stream(STREAM, line(0, "a"), httpx.ReadError("cut"))
    fake.add("GET", STREAM, httpx.ConnectError("refused"))

    with pytest.raises(Unreachable):
        await read_log(client)

    assert 600 <= fake.clock.monotonic() < 700


async def test_a_refusal_is_raised_at_once(client: ControlClient, fake: FakeControl) -> None:
    fake.refuse("GET", STREAM, 404, "not_found", "no such job")

    with pytest.raises(RemoteProblem):
        await read_log(client)


@pytest.mark.parametrize(
    "blocking",
    [
        httpx.Response(200, headers={"Content-Type": "text/html"}, text="<p>hello</p>"),
        httpx.Response(405, text="no streams here"),
        httpx.ReadTimeout("a proxy holds everything back"),
    ],
)
async def test_a_blocked_log_stream_is_polled_through_all_executions(
    blocking: httpx.Response | Exception, client: ControlClient, fake: FakeControl
) -> None:
    second = make_id("exe", 2)
    fake.add("GET", STREAM, blocking)
    fake.answer("GET", LOGS, samples.log_page(samples.record(0, "a"), complete=False))
    fake.answer("GET", LOGS, samples.log_page(samples.record(1, "b")))
    fake.answer(
        "GET",
        LOGS,
        samples.log_page(samples.record(0, "c", execution_id=second), execution_id=second),
    )
    fake.answer(
        "GET",
        f"/v1/jobs/{JOB}",
        samples.job("succeeded", samples.execution(1), samples.execution(2)),
    )

    assert await read_log(client) == ["a", "b", "c"]
    asked = [
        (each.url.params.get("execution"), each.url.params["offset"])
        for each in fake.sent("GET", LOGS)
    ]
    assert asked == [(None, "0"), (EXE, "10"), (second, "0")]


async def test_polling_ends_for_a_job_that_is_over_with_an_incomplete_log(
    client: ControlClient, fake: FakeControl
) -> None:
    fake.add("GET", STREAM, httpx.ReadTimeout("blocked"))
    fake.answer("GET", LOGS, samples.log_page(complete=False))
    fake.answer("GET", f"/v1/jobs/{JOB}", samples.job("lost"))

    assert await read_log(client) == []


async def test_streams_that_close_empty_twice_are_given_up(
    client: ControlClient, fake: FakeControl
) -> None:
    fake.stream(STREAM)
    fake.stream(STREAM)
    fake.answer("GET", LOGS, samples.log_page(samples.record(0, "a")))
    fake.answer("GET", f"/v1/jobs/{JOB}", samples.job())

    assert await read_log(client) == ["a"]
    assert len(fake.sent("GET", STREAM)) == 2


async def test_a_workflow_is_told_once_per_change_until_it_ends(
    client: ControlClient, fake: FakeControl
) -> None:
    fake.answer("GET", FLOW, samples.workflow(revision=1))
    fake.answer("GET", FLOW, samples.workflow(state="succeeded", revision=4))
    stream = [
        change(1),
        change(2),
        change(2),
        change(1),
        change(3),
        event("news", "?"),
        change(4, "succeeded"),
        event("end"),
    ]
    fake.stream(f"{FLOW}/stream", *stream)

    assert await read_flow(client) == [1, 2, 3, 4]


async def test_a_cut_workflow_stream_misses_nothing(
    client: ControlClient, fake: FakeControl
) -> None:
    for revision in (1, 3):
        fake.answer("GET", FLOW, samples.workflow(revision=revision))
    fake.answer("GET", FLOW, samples.workflow(state="failed", revision=5))
    fake.stream(f"{FLOW}/stream", change(2), httpx.ReadError("cut"))
    fake.stream(f"{FLOW}/stream", change(4), httpx.ReadTimeout("dead line"))

    assert await read_flow(client) == [1, 2, 3, 4, 5]


async def test_a_workflow_is_polled_where_streams_are_blocked(
    client: ControlClient, fake: FakeControl
) -> None:
    for revision in (1, 1, 2):
        fake.answer("GET", FLOW, samples.workflow(revision=revision))
    fake.answer("GET", FLOW, samples.workflow(state="cancelled", revision=3))
    fake.add("GET", f"{FLOW}/stream", httpx.Response(406, text="no"))

    assert await read_flow(client) == [1, 2, 3]
    assert len(fake.sent("GET", f"{FLOW}/stream")) == 1


async def test_an_event_that_cannot_be_read_is_told(
    client: ControlClient, fake: FakeControl
) -> None:
    fake.stream(STREAM, event("record", "{}"))

    with pytest.raises(UnexpectedReply, match="sent a `record` that cannot be parsed"):
        await read_log(client)
