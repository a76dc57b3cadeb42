"""Server-sent events: live, resumable, kept alive, ended by `end`."""

import json
from typing import Any

import pytest
import zstandard

from exclave.api import streams
from exclave.control.logs import logs
from exclave.control.orgs import token_revocation
from exclave.control.workflows import workflows
from exclave.domain.identity import Role
from exclave.domain.jobs import ExecutionId
from exclave.domain.workflows import WorkflowId
from exclave.wire.jobs import OutcomeState, Reason
from exclave.wire.logs import Stream, write_record
from exclave.wire.runner import Outcome
from tests.integration.api.cases import Running, make_execution, make_flow
from tests.integration.api.kit import MISSING, Site, make_caller
from tests.integration.api.live import open_live


def read(text: str) -> list[tuple[str, str, Any]]:
    """Read events as (name, id, data); comments are left out."""
    events = []
    for block in text.split("\n\n"):
        fields = dict(
            line.split(": ", 1)
            for line in block.split("\n")
            if ": " in line and not line.startswith(":")
        )
        if "event" in fields:
            events.append((fields["event"], fields.get("id", ""), json.loads(fields["data"])))
    return events


async def write_log(site: Site, running: Running, first: int, count: int, at: int = 0) -> int:
    """Append some records; answer where the log ends."""
    lines = b"".join(
        write_record(n, n, Stream.STDOUT, f"line {n}\u2028 & \r more")
        for n in range(first, first + count)
    )
    reply = await logs.append_log(
        site.deps,
        running.enrolled.peer.who,
        ExecutionId(running.execution),
        running.epoch,
        at,
        zstandard.compress(lines),
    )
    return reply.next_offset


async def finish(site: Site, running: Running, end: int) -> None:
    done = Outcome(state=OutcomeState.SUCCEEDED, reason=Reason.COMPLETED, log_end=end)
    await running.enrolled.peer.hand_in(running.execution, running.epoch, done)


async def test_a_workflow_is_sent_now_at_each_change_and_to_its_end(site: Site) -> None:
    flow = await make_flow(site)
    live = open_live(site, "GET", f"/v1/workflows/{flow.id}/stream")
    await live.read_until("event: workflow")

    await site.call("POST", f"/v1/workflows/{flow.id}/steps/wait/event", json={"outputs": {"n": 1}})
    await live.read_until("event: workflow", 2)
    await workflows.cancel_workflow(site.deps, site.admin.user, WorkflowId(flow.id))
    events = read(await live.finish())

    assert [name for name, _, _ in events] == ["workflow"] * (len(events) - 1) + ["end"]
    revisions = [data["revision"] for name, _, data in events if name == "workflow"]
    assert revisions == sorted(revisions)
    assert [event_id for name, event_id, _ in events if name == "workflow"] == list(
        map(str, revisions)
    )
    assert events[-2][2]["state"] == "cancelled"


async def test_streams_pass_proxies_unbuffered(site: Site) -> None:
    flow = await make_flow(site)
    live = open_live(site, "GET", f"/v1/workflows/{flow.id}/stream")
    await live.read_until("event: workflow")

    assert live.status == 200
    assert live.headers["content-type"].startswith("text/event-stream")
    assert live.headers["cache-control"] == "no-store, no-transform"
    assert live.headers["x-accel-buffering"] == "no"
    await live.hang_up()


async def test_a_quiet_stream_is_kept_alive_by_comments(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "PING_S", 0.02)
    flow = await make_flow(site)
    live = open_live(site, "GET", f"/v1/workflows/{flow.id}/stream")

    await live.read_until(": ping", 3)

    assert len(read(live.body.decode())) == 1
    await live.hang_up()
    assert not site.deps.hub.watches


async def test_a_revoked_token_ends_its_streams_without_an_end(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "PING_S", 0.02)
    viewer = await make_caller(site.deps, site.admin.user, Role.VIEWER)
    flow = await make_flow(site)
    path = f"/v1/workflows/{flow.id}/stream"
    live = open_live(site, "GET", path, authorization=f"Bearer {viewer.token}")
    await live.read_until(": ping")

    await token_revocation.revoke_token(site.deps, site.admin.user, viewer.user.token)

    assert "event: end" not in await live.finish()


async def test_a_server_that_stops_hangs_up_without_an_end(site: Site) -> None:
    flow = await make_flow(site)
    live = open_live(site, "GET", f"/v1/workflows/{flow.id}/stream")
    await live.read_until("event: workflow")

    site.deps.hub.close()

    assert "event: end" not in await live.finish()


async def test_a_log_is_followed_live_and_ends(site: Site) -> None:
    running = await make_execution(site)
    live = open_live(site, "GET", f"/v1/jobs/{running.job}/logs/stream")
    end = await write_log(site, running, 0, 3)
    await live.read_until("event: record", 3)

    end = await write_log(site, running, 3, 2, end)
    await live.read_until("event: record", 5)
    await finish(site, running, end)
    events = read(await live.finish())

    assert [data.get("n") for _, _, data in events] == [0, 1, 2, 3, 4, None]
    assert events[0][2]["text"] == "line 0\u2028 & \r more"
    assert events[-2][1] == f"{running.execution}:{end}"
    assert events[-1][0] == "end"


@pytest.mark.parametrize("way", ["header", "query", "offset only"])
async def test_a_cut_log_stream_goes_on_where_it_was(site: Site, way: str) -> None:
    running = await make_execution(site)
    end = await write_log(site, running, 0, 6)
    await finish(site, running, end)
    path = f"/v1/jobs/{running.job}/logs/stream"
    place = read((await site.call("GET", path)).text)[2][1]
    execution, _, offset = place.partition(":")
    match way:
        case "header":
            reply = await site.call("GET", path, headers={"Last-Event-ID": place})
        case "query":
            reply = await site.call("GET", f"{path}?execution={execution}&offset={offset}")
        case _:
            reply = await site.call("GET", f"{path}?offset={offset}")

    events = read(reply.text)

    assert [data.get("n") for _, _, data in events] == [3, 4, 5, None]


async def test_a_place_in_an_unknown_execution_is_a_problem_and_not_a_stream(site: Site) -> None:
    running = await make_execution(site)
    path = f"/v1/jobs/{running.job}/logs/stream"

    reply = await site.call("GET", path, headers={"Last-Event-ID": f"exe_{MISSING}:5"})

    assert (reply.status_code, reply.json()["code"]) == (404, "not_found")


async def test_a_log_is_read_by_polling_too(site: Site) -> None:
    running = await make_execution(site)
    end = await write_log(site, running, 0, 6)
    path = f"/v1/jobs/{running.job}/logs"

    first = (await site.call("GET", f"{path}?limit=4")).json()
    rest = (await site.call("GET", f"{path}?offset={first['next_offset']}")).json()
    await finish(site, running, end)
    last = (await site.call("GET", f"{path}?offset={end}&wait_s=5")).json()

    assert [r["n"] for r in first["records"] + rest["records"]] == list(range(6))
    assert (first["complete"], rest["complete"], last["complete"]) == (False, False, True)


async def test_logs_are_searched_in_a_job_and_in_an_install(site: Site) -> None:
    running = await make_execution(site)
    await write_log(site, running, 0, 12)

    in_job = await site.call("GET", f"/v1/jobs/{running.job}/logs/search?q=LINE 1")
    in_install = await site.call("GET", f"/v1/logs/search?queue_id={running.queue}&q=line 11")

    assert [match["record"]["n"] for match in in_job.json()["items"]] == [1, 10, 11]
    assert [match["job_id"] for match in in_install.json()["items"]] == [running.job]
