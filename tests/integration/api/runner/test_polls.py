"""The bare routes: held polls, runners that hang up, and the same problems as everywhere."""

import asyncio
import json

from exclave.control.dispatch import runners
from exclave.wire.runner import PROTOCOL
from tests.integration.api.kit import Site
from tests.integration.api.live import LiveRequest, open_live
from tests.support.world import job, run_workflow


def write_poll(no: int = 1, hold_s: float = 30.0) -> bytes:
    return json.dumps(
        {
            "boot": 5,
            "no": no,
            "nonce": f"nonce-of-poll-{no:06d}",
            "free": 1,
            "executions": [],
            "max_hold_s": hold_s,
            "version": "1",
            "protocol": PROTOCOL,
            "capabilities": ["noop"],
        }
    ).encode()


async def hold_poll(site: Site, no: int = 1) -> LiveRequest:
    live = open_live(site, "POST", "/v1/poll", app="runner", content=write_poll(no))
    async with asyncio.timeout(10):
        while f"queue:{site.queue}" not in site.deps.hub.watches:  # noqa: ASYNC110 - the app sets no event
            await asyncio.sleep(0.005)
    await asyncio.sleep(0.01)
    return live


async def test_a_held_poll_is_answered_when_work_arrives(site: Site) -> None:
    live = await hold_poll(site)
    assert live.status == 0

    await run_workflow(site.deps, site.admin.user, site.queue, job("one"))
    reply = json.loads(await live.finish())

    assert live.status == 200
    assert live.headers["content-type"] == "application/json"
    assert len(reply["offers"]) == 1


async def test_a_runner_that_hangs_up_is_missed_soon_and_its_poll_forgotten(site: Site) -> None:
    live = await hold_poll(site)
    assert site.deps.parked_polls.polling == 1

    await live.hang_up()

    assert site.deps.parked_polls.polling == 0
    assert not site.deps.hub.watches
    site.clock.advance(4)
    shown = await runners.show_runner(site.deps, site.admin.user, site.enrolled.peer.who.runner)
    assert shown.presence == "late"
    assert shown.cause == "the runner closed its connection or was killed"


async def test_a_runner_that_hangs_up_an_old_poll_is_still_there(site: Site) -> None:
    old = await hold_poll(site, 1)
    new = open_live(site, "POST", "/v1/poll", app="runner", content=write_poll(2))
    await asyncio.sleep(0.05)

    await old.hang_up()

    site.clock.advance(4)
    shown = await runners.show_runner(site.deps, site.admin.user, site.enrolled.peer.who.runner)
    assert shown.presence == "up"
    await new.hang_up()


async def test_work_that_was_offered_to_a_closed_connection_is_offered_again(site: Site) -> None:
    live = await hold_poll(site)
    await live.hang_up()
    await run_workflow(site.deps, site.admin.user, site.queue, job("one"))

    again = open_live(site, "POST", "/v1/poll", app="runner", content=write_poll(2))
    reply = json.loads(await again.finish())

    assert len(reply["offers"]) == 1


async def test_a_revoked_runner_is_let_go_at_once(site: Site) -> None:
    live = await hold_poll(site)

    await runners.revoke_runner(site.deps, site.admin.user, site.enrolled.peer.who.runner, "stolen")
    problem = json.loads(await live.finish())

    assert (live.status, problem["code"]) == (401, "unauthenticated")


async def test_an_older_protocol_is_told_so(site: Site) -> None:
    body = json.loads(write_poll()) | {"protocol": "0.9"}

    reply = await site.call("POST", "/v1/poll", app="runner", json=body)

    assert (reply.status_code, reply.json()["code"]) == (409, "conflict")
    assert "protocol 0.9" in reply.json()["detail"]


async def test_a_stale_poll_is_told_so(site: Site) -> None:
    await site.call("POST", "/v1/poll", app="runner", content=write_poll(7, 0), headers=_JSON)

    reply = await site.call(
        "POST", "/v1/poll", app="runner", content=write_poll(6, 0), headers=_JSON
    )

    assert (reply.status_code, reply.json()["code"]) == (409, "stale_request")


_JSON = {"Content-Type": "application/json"}
