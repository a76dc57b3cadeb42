"""Every route x every kind of caller: who may, who may not, and what the others learn."""

import re
from collections.abc import Iterator

import pytest
import pytest_asyncio
from fastapi.routing import iter_route_contexts
from starlette.routing import BaseRoute, Mount, Route

from exclave.api.control import build_control_app
from exclave.api.runner import build_runner_app
from exclave.base.id_forms import ID_PATTERN
from exclave.control.dispatch import runners
from exclave.control.orgs import accounts, token_revocation
from exclave.domain.identity import Role
from tests.integration.api.cases import Call
from tests.integration.api.kit import (
    GARBAGE,
    MISSING,
    Site,
    enrol,
    make_admin,
    make_caller,
    make_enrolment_token,
)
from tests.integration.api.matrix import CALLERS, ROWS, Row
from tests.support.world import make_install

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "TRACE")
Tokens = dict[str, dict[str, str]]


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def site(shared_site: Site) -> Site:
    return shared_site


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tokens(shared_site: Site) -> Tokens:
    """The credential of each caller, per API where they differ."""
    site = shared_site
    other_admin = await make_admin(site.deps, "rival")
    deps, user = site.deps, site.admin.user
    expired = await make_caller(deps, user, Role.ADMIN, life_s=1)
    revoked = await make_caller(deps, user, Role.ADMIN)
    await token_revocation.revoke_token(deps, user, revoked.user.token)
    gone = await enrol(deps, user, site.queue)
    await runners.revoke_runner(deps, user, gone.peer.who.runner, "was stolen")
    late = await enrol(deps, user, site.queue)
    site.clock.advance(deps.timings.access_token_s + 1)
    build = (await accounts.show_org(deps, user)).build_queue_id
    other_queue = await make_install(deps, other_admin.user)
    sibling_queue = await make_install(deps, user, "staging")
    fresh = {
        "none": "",
        "garbage": GARBAGE,
        **{role: (await make_caller(deps, user, Role(role))).token for role in _ROLES},
        "admin": site.admin.token,
        "other_admin": other_admin.token,
        "runner": (await enrol(deps, user, site.queue)).token,
        "sibling": (await enrol(deps, user, sibling_queue)).token,
        "other_runner": (await enrol(deps, other_admin.user, other_queue)).token,
        "build_runner": (await enrol(deps, user, build)).token,  # type: ignore[arg-type]
        "enrolment": await make_enrolment_token(deps, user, site.queue),
    }
    return {
        "control": {**fresh, "expired": expired.token, "revoked": revoked.token},
        "runner": {
            **fresh,
            "garbage": GARBAGE.replace("xcl", "xcr"),
            "expired": late.token,
            "revoked": gone.token,
        },
    }


_ROLES = ("viewer", "operator", "approver")


UNKNOWN = 401
"""Whoever is refused at the door uses nothing up: these callers may share a thing."""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.app} {row.method} {row.route}")
async def test_a_route_opens_for_exactly_those_who_may(
    site: Site, tokens: Tokens, row: Row
) -> None:
    found = {}
    bodies = {}
    untouched = await row.make(site)
    for caller in CALLERS:
        call = untouched if row.expected[caller] == UNKNOWN else await row.make(site)
        token = tokens[row.app][caller]
        if caller == "runner" and call.runner:
            token = await _renew(site, call)
        reply = await site.call(row.method, call.path, token, app=row.app, **call.rest)
        found[caller] = reply.status_code
        bodies[caller] = reply.text

    assert found == row.expected
    if row.app == "control":
        assert str(site.admin.user.org) not in bodies["other_admin"]
        assert site.queue not in bodies["other_admin"]
    for caller, status in found.items():
        if status == 401:
            assert '"code":"unauthenticated"' in bodies[caller]


def find_id(path: str) -> str:
    """Return the first id in a path; it has four characters before its digits."""
    return next(part for part in path.split("/") if re.fullmatch(ID_PATTERN, part))


@pytest.mark.parametrize(
    "row", [r for r in ROWS if "404" in r.statuses and "{" in r.route],
    ids=lambda row: f"{row.app} {row.method} {row.route}",
)  # fmt: skip
async def test_a_foreign_thing_looks_like_a_missing_one_and_like_a_malformed_one(
    site: Site, tokens: Tokens, row: Row
) -> None:
    stranger = "other_admin" if row.app == "control" else "sibling"
    own = (await row.make(site)).path
    thing = find_id(own)
    replies = []
    for named in (thing, f"{thing[:4]}{MISSING}", "not-an-id", "%00", "x" * 3000, "%f0%9f%92%a9"):
        call = await row.make(site)
        mine = find_id(call.path)
        path = call.path.replace(mine, mine if named == thing else named)
        token = tokens[row.app][stranger]
        reply = await site.call(row.method, path, token, app=row.app, **call.rest)
        replies.append((reply.status_code, reply.content))

    assert {status for status, _ in replies} == {404}
    assert len({content for _, content in replies}) == 1


async def test_a_thing_outside_of_a_grants_scope_looks_like_a_missing_one(site: Site) -> None:
    elsewhere = await make_install(site.deps, site.admin.user, "narrow")
    narrow = await make_caller(site.deps, site.admin.user, Role.ADMIN, install=elsewhere)
    for row in ROWS:
        if row.app != "control" or "404" not in row.statuses or "{" not in row.route:
            continue
        call = await row.make(site)
        thing = find_id(call.path)
        missing = call.path.replace(thing, f"{thing[:4]}{MISSING}")

        hidden = await site.call(row.method, call.path, narrow.token, **call.rest)
        absent = await site.call(row.method, missing, narrow.token, **call.rest)

        assert hidden.status_code == 404, row.route
        assert hidden.content == absent.content, row.route


async def test_every_route_has_a_row_and_every_row_a_route(site: Site) -> None:
    served = {
        *(("control", *each) for each in _list_routes(build_control_app(site.deps).routes)),
        *(("runner", *each) for each in _list_routes(build_runner_app(site.deps).routes)),
    }

    assert served == {(row.app, row.method, row.route) for row in ROWS}


@pytest.mark.parametrize("app", ["control", "runner"])
async def test_a_method_that_a_path_does_not_know_is_refused(site: Site, app: str) -> None:
    known: dict[str, set[str]] = {}
    for row in ROWS:
        if row.app == app:
            known.setdefault(row.route, set()).add(row.method)
    for route, methods in known.items():
        path = route.replace("{step}", "gate").replace("{lane}", "sandbox")
        for name in (
            "registry_token",
            "token",
            "install",
            "runner",
            "workflow",
            "job",
            "execution",
        ):
            path = path.replace(f"{{{name}}}", f"{name[:3]}_{MISSING}")
        for method in set(METHODS) - methods:
            for token in ("", site.admin.token):
                reply = await site.call(method, path, token, app=app)

                assert reply.status_code == 405, (method, path)
                assert reply.json()["code"] == "method_not_allowed"
                assert set(reply.headers["Allow"].split(", ")) - {"HEAD"} == methods


async def test_a_token_in_the_query_string_opens_nothing(site: Site) -> None:
    for name in ("token", "access_token", "authorization", "bearer"):
        reply = await site.call("GET", f"/v1/whoami?{name}={site.admin.token}", "")

        assert reply.status_code == 401


@pytest.mark.parametrize(
    "sent",
    ["Basic {}", "Bearer", "Bearer {} {}", "Token {}", "{}", "Bearer\t{}", "Bearer {}\u00e9"],
)
async def test_a_token_is_sent_in_one_way_only(site: Site, sent: str) -> None:
    value = sent.replace("{}", site.admin.token).encode("latin-1")

    reply = await site.control.get("/v1/whoami", headers={b"Authorization": value})

    assert reply.status_code == 401
    assert reply.headers["WWW-Authenticate"] == "Bearer"


async def test_two_authorization_headers_are_one_too_many(site: Site) -> None:
    header = ("Authorization", f"Bearer {site.admin.token}")

    reply = await site.control.get("/v1/whoami", headers=[header, header])

    assert reply.status_code == 401


async def test_an_unknown_caller_is_refused_before_the_body_is_read(site: Site) -> None:
    reply = await site.call("POST", "/v1/workflows", "", content=b"{not json")

    assert reply.status_code == 401


async def _renew(site: Site, call: Call) -> str:
    """The owner's token, unless the clock has gone past it."""
    if call.path in {"/v1/poll", "/v1/renew"}:
        return (await enrol(site.deps, site.admin.user, site.queue)).token
    return call.runner


def _list_routes(routes: list[BaseRoute]) -> Iterator[tuple[str, str]]:
    for context in iter_route_contexts(routes):
        route = context.original_route
        if isinstance(route, Mount):
            yield from _list_routes(list(route.routes))
        elif isinstance(route, Route):
            for method in (route.methods or {"POST"}) - {"HEAD"}:
                yield method, route.path_format
