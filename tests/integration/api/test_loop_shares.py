"""Every request whose cost a tenant chooses waits once the tenant's loop time is spent."""

import asyncio
from dataclasses import replace

import pytest

from exclave.api.control.app import build_control_app
from exclave.api.requests import LIMITS, VITAL
from exclave.api.runner.app import build_runner_app
from exclave.control.runtime import loop_shares
from exclave.control.runtime.loop_shares import LoopShares
from exclave.control.runtime.request_slots import RequestSlots
from tests.integration.api.cases import make_execution
from tests.integration.api.kit import Site, open_client

OTHER = "org_other"
ROUTES = {
    "/v1/workflows": ("POST", "control"),
    "/v1/apps/{app}/sync": ("PUT", "control"),
    "/v1/executions/{execution}/log": ("POST", "runner"),
    "/v1/executions/{execution}/state": ("POST", "runner"),
    "/v1/executions/{execution}/attachments/{name}": ("PUT", "runner"),
    "/v1/executions/{execution}/result": ("POST", "runner"),
    "/v1/poll": ("POST", "runner"),
}
VITAL_ROUTES = ("/v1/renew", "/v1/executions/{execution}/start")


@pytest.fixture
async def shared(site: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A site whose event loop is shared; the time of its shares stands still."""
    monkeypatch.setattr(loop_shares, "_now", lambda: 1000.0)
    slots = RequestSlots(8)
    deps = replace(site.deps, loop_slots=slots, loop_shares=LoopShares(slots))
    return replace(
        site,
        deps=deps,
        control=open_client(build_control_app(deps)),
        runner=open_client(build_runner_app(deps)),
    )


async def spend_all(site: Site, kind: str) -> None:
    """Charge so much loop time for a kind of request that the next one is refused."""
    await be_beside_another(site)
    site.deps.loop_shares.charge(site.admin.user.org, kind, 10.0, 0.0)


async def be_beside_another(site: Site) -> None:
    """Let both orgs count as active."""
    for org in (OTHER, site.admin.user.org):
        async with site.deps.loop_slots.hold(org):
            pass


@pytest.mark.parametrize("route", ROUTES)
async def test_a_costly_route_is_refused_once_the_loop_time_is_spent(
    shared: Site, route: str
) -> None:
    running = await make_execution(shared)
    method, app = ROUTES[route]
    path = route.format(app="x", execution=running.execution, name="plan")
    token = running.enrolled.token if app == "runner" else None
    await spend_all(shared, route)

    reply = await shared.call(method, path, token, app=app, json={})

    assert (reply.status_code, reply.json()["code"]) == (429, "busy")
    assert int(reply.headers["Retry-After"]) > 1


async def test_other_requests_of_the_org_are_served_all_the_same(shared: Site) -> None:
    running = await make_execution(shared)
    renewal = {"boot": 1, "no": 60, "executions": [{"id": running.execution, "epoch": 1}]}
    for kind in ROUTES:
        await spend_all(shared, kind)

    asked = await shared.call("GET", "/v1/whoami")
    renewed = await shared.call(
        "POST", "/v1/renew", running.enrolled.token, app="runner", json=renewal
    )

    assert (asked.status_code, renewed.status_code) == (200, 200)


@pytest.mark.parametrize("route", [*VITAL_ROUTES, "/v1/poll"])
async def test_requests_that_keep_executions_alive_are_small(shared: Site, route: str) -> None:
    running = await make_execution(shared)
    path = route.format(execution=running.execution)

    reply = await shared.call(
        "POST", path, running.enrolled.token, app="runner", content=b"x" * (VITAL + 1)
    )

    assert reply.status_code == 413
    assert LIMITS[route] == VITAL


async def test_a_large_body_is_charged_by_its_size(shared: Site) -> None:
    await asyncio.gather(
        *[shared.call("POST", "/v1/workflows", content=b"x" * (1 << 20)) for _ in range(60)]
    )
    await be_beside_another(shared)

    reply = await shared.call("POST", "/v1/workflows", json={})

    assert (reply.status_code, reply.json()["code"]) == (429, "busy")
