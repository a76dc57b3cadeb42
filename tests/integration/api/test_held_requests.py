"""Requests that one org keeps open leave connections for the others."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from tests.integration.api.cases import make_execution, make_flow
from tests.integration.api.kit import Site, enrol, make_admin
from tests.integration.api.live import LiveRequest, open_live
from tests.support.world import make_install

CONNECTIONS = 8
SHARE = 6


@pytest.fixture
async def opened() -> AsyncIterator[list[LiveRequest]]:
    requests: list[LiveRequest] = []
    yield requests
    for request in requests:
        await request.hang_up()


async def wait_until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not is_so():  # noqa: ASYNC110 - the app sets no event
            await asyncio.sleep(0.005)


async def test_streams_of_one_org_leave_connections_for_others(
    site: Site, opened: list[LiveRequest]
) -> None:
    flow, other = await make_flow(site), await make_admin(site.deps, "globex")
    held, org = site.deps.held_by_users, site.admin.user.org
    held.connections = CONNECTIONS
    for _ in range(SHARE):
        opened.append(open_live(site, "GET", f"/v1/workflows/{flow.id}/stream"))
        await opened[-1].read_until("event: workflow")

    refused = await site.call("GET", "/v1/whoami")
    others = await site.call("GET", "/v1/whoami", other.token)

    assert (refused.status_code, refused.json()["code"]) == (429, "busy")
    assert refused.headers["Retry-After"] == "1"
    assert others.status_code == 200
    assert (held.count(org), held.count(other.user.org)) == (SHARE, 0)


async def test_bodies_that_never_arrive_leave_connections_for_others(
    site: Site, opened: list[LiveRequest]
) -> None:
    other = await make_admin(site.deps, "globex")
    held, org = site.deps.held_by_users, site.admin.user.org
    held.connections = CONNECTIONS
    for path in ("/v1/workflows", "/v1/apps"):
        opened += [open_live(site, "POST", path, content=None) for _ in range(SHARE // 2)]
    await wait_until(lambda: held.count(org) == SHARE)

    refused = await site.call("GET", "/v1/whoami")
    others = await site.call("GET", "/v1/whoami", other.token)
    for request in opened:
        await request.hang_up()
    again = await site.call("GET", "/v1/whoami")

    assert (refused.status_code, others.status_code, again.status_code) == (429, 200, 200)
    assert held.count(org) == 0


async def test_a_runner_that_holds_requests_keeps_no_other_org_from_renewing(
    site: Site, opened: list[LiveRequest]
) -> None:
    running = await make_execution(site)
    other = await make_admin(site.deps, "globex")
    honest = await enrol(site.deps, other.user, await make_install(site.deps, other.user))
    held, org = site.deps.held_by_runners, site.admin.user.org
    held.connections = CONNECTIONS
    opened += [
        open_live(site, "POST", "/v1/poll", app="runner", content=None) for _ in range(SHARE)
    ]
    await wait_until(lambda: held.count(org) == SHARE)
    wish = {"boot": 1, "no": 60, "executions": []}
    own = {**wish, "executions": [{"id": running.execution, "epoch": running.epoch}]}

    refused = await site.call("POST", "/v1/poll", app="runner", json={})
    renewed = await site.call("POST", "/v1/renew", running.enrolled.token, app="runner", json=own)
    others = await site.call("POST", "/v1/renew", honest.token, app="runner", json=wish)

    assert refused.status_code == 429
    assert (renewed.status_code, others.status_code) == (200, 200), "renewals go on"
