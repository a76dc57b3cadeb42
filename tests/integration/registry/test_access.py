"""Every route x every kind of caller, and what another tenant learns: nothing."""

import base64
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from starlette.routing import Route

from exclave.control.dispatch import runners
from exclave.control.orgs import accounts
from exclave.control.runtime.rates import Limits
from exclave.registry.app import build_routes
from tests.integration.api.kit import GARBAGE, enrol, make_admin
from tests.integration.registry.kit import EMPTY, Hub, digest_of, make_app, make_manifest
from tests.support.world import make_install

LAYER = b"layer"
DIGEST = digest_of(LAYER)
CALLERS = (
    "none", "garbage", "expired", "pull", "push", "elsewhere", "folder", "rival", "api",
    "enrolment", "build", "installed", "sibling", "revoked",
)  # fmt: skip


@dataclass(frozen=True)
class Call:
    path: str
    rest: dict[str, Any] = field(default_factory=dict)


Make = Callable[[Hub], Awaitable[Call]]


def at(path: str, **rest: Any) -> Make:
    async def make(hub: Hub) -> Call:
        await hub.publish(LAYER, tag="v1")
        return Call(path, rest)

    return make


def on_upload(query: str = "", **rest: Any) -> Make:
    async def make(hub: Hub) -> Call:
        reply = await hub.call("POST", "blobs/uploads/")
        return Call(reply.headers["Location"] + query, rest)

    return make


async def push_manifest(hub: Hub) -> Call:
    document = await hub.publish(LAYER)
    headers = {"Content-Type": "application/vnd.oci.image.manifest.v1+json"}
    return Call("manifests/v2", {"content": document, "headers": headers})


_U = "/{name:path}/blobs/uploads"
_TOKEN = {"username": "exclave", "password": "?"}
#                                                                          none garb expi pull push else fold rivl api  enro bild inst sibl revo
ROWS = (
    ("GET", "/", at("/v2/"),                                              "401 401 401 200 200 200 200 200 401 401 200 200 200 401"),
    ("GET", "/token", at("/v2/token"),                                    "401 401 401 200 200 200 200 200 401 401 200 200 200 401"),
    ("POST", "/token", at("/v2/token", data=_TOKEN),                      "401 401 401 200 200 200 200 200 401 401 200 200 200 401"),
    ("POST", f"{_U}/", at("blobs/uploads/"),                              "401 401 401 403 202 404 202 404 401 401 202 403 404 401"),
    ("POST", _U, at("blobs/uploads"),                                     "401 401 401 403 202 404 202 404 401 401 202 403 404 401"),
    ("GET", f"{_U}/{{upload}}", on_upload(),                              "401 401 401 403 204 404 204 404 401 401 204 403 404 401"),
    ("PATCH", f"{_U}/{{upload}}", on_upload(content=LAYER),               "401 401 401 403 202 404 202 404 401 401 202 403 404 401"),
    ("PUT", f"{_U}/{{upload}}", on_upload(f"?digest={DIGEST}", content=LAYER),
                                                                          "401 401 401 403 201 404 201 404 401 401 201 403 404 401"),
    ("DELETE", f"{_U}/{{upload}}", on_upload(),                           "401 401 401 403 204 404 204 404 401 401 204 403 404 401"),
    ("GET", "/{name:path}/blobs/{digest}", at(f"blobs/{DIGEST}"),         "401 401 401 200 200 404 200 404 401 401 200 200 404 401"),
    ("DELETE", "/{name:path}/blobs/{digest}", at(f"blobs/{DIGEST}"),      "401 401 401 403 202 404 202 404 401 401 403 403 404 401"),
    ("GET", "/{name:path}/manifests/{reference}", at("manifests/v1"),     "401 401 401 200 200 404 200 404 401 401 200 200 404 401"),
    ("PUT", "/{name:path}/manifests/{reference}", push_manifest,          "401 401 401 403 201 404 201 404 401 401 201 403 404 401"),
    ("DELETE", "/{name:path}/manifests/{reference}", at("manifests/v1"),  "401 401 401 403 202 404 202 404 401 401 403 403 404 401"),
    ("GET", "/{name:path}/tags/list", at("tags/list"),                    "401 401 401 200 200 404 200 404 401 401 200 200 404 401"),
    ("GET", "/{name:path}/referrers/{digest}", at(f"referrers/{DIGEST}"), "401 401 401 200 200 404 200 404 401 401 200 200 404 401"),
)  # fmt: skip


async def make_tokens(hub: Hub) -> dict[str, str]:
    deps, user = hub.deps, hub.admin.user
    expired = await hub.make_token(push=True, minutes=1)
    lost = await enrol(deps, user, (await accounts.show_org(deps, user)).build_queue_id)  # type: ignore[arg-type]
    await runners.revoke_runner(deps, user, lost.peer.who.runner, "was stolen")
    hub.clock.advance(61)
    rival = await make_admin(deps, deps.ids.new("org").replace("_", "-"))
    other = Hub(deps, hub.clock, hub.http, rival, "")
    mine = await make_install(deps, user, "mine")
    theirs = await make_install(deps, user, "theirs")
    await make_app(deps, hub.org, "demo", mine)
    await make_app(deps, hub.org, "other", theirs)
    build = (await accounts.show_org(deps, user)).build_queue_id
    return {
        "none": "",
        "garbage": GARBAGE.replace("xcl", "xcg"),
        "expired": expired,
        "pull": await hub.make_token("apps/demo"),
        "push": await hub.make_token("apps/demo", push=True),
        "elsewhere": await hub.make_token("apps/demo-two", push=True),
        "folder": await hub.make_token("apps/*", push=True),
        "rival": await other.make_token("*", push=True),
        "api": hub.admin.token,
        "enrolment": (await runners.create_enrolment(deps, user, mine)).token,
        "build": (await enrol(deps, user, build)).token,  # type: ignore[arg-type]
        "installed": (await enrol(deps, user, mine)).token,
        "sibling": (await enrol(deps, user, theirs)).token,
        "revoked": lost.token,
    }


def password(token: str) -> dict[str, str]:
    both = base64.b64encode(f"exclave:{token}".encode()).decode()
    return {"Authorization": f"Basic {both}"}


async def send(hub: Hub, method: str, call: Call, token: str) -> httpx.Response:
    rest = dict(call.rest)
    if call.path.startswith("/v2/token"):
        if "data" in rest:
            rest["data"] = {**rest["data"], "password": token}
            return await hub.call(method, call.path, "", **rest)
        return await hub.call(method, call.path, "", headers=password(token))
    return await hub.call(method, call.path, token, **rest)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]} {row[1]}")
async def test_a_route_opens_for_exactly_those_who_may(
    hub: Hub, row: tuple[str, str, Make, str]
) -> None:
    method, _, make, statuses = row
    tokens = await make_tokens(hub)
    found = {}
    for caller in CALLERS:
        call = await make(hub)
        reply = await send(hub, method, call, tokens[caller])
        found[caller] = reply.status_code
        if reply.status_code == 401:
            assert reply.json()["errors"][0]["code"] == "UNAUTHORIZED"
            assert reply.headers["WWW-Authenticate"].startswith("Bearer realm=")
        if method == "GET" and not call.path.startswith("/v2/token"):
            head = await send(hub, "HEAD", call, tokens[caller])
            assert head.status_code == reply.status_code

    assert found == dict(zip(CALLERS, map(int, statuses.split()), strict=True))


async def test_every_route_has_a_row_and_every_row_a_route(hub: Hub) -> None:
    served = {
        (method, route.path)
        for route in build_routes()
        if isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}
    }

    assert served == {row[:2] for row in ROWS}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]} {row[1]}")
async def test_another_orgs_repository_looks_like_a_missing_one(
    hub: Hub, row: tuple[str, str, Make, str]
) -> None:
    method, route, make, _ = row
    if "{name" not in route:
        return
    tokens = await make_tokens(hub)
    bodies = set()
    for changed in ({}, {"apps/demo": "apps/none"}, {str(hub.org): "org_" + "0" * 26}):
        call = await make(hub)
        where = call.path if call.path.startswith("/") else f"{hub.name()}/{call.path}"
        for old, new in changed.items():
            where = where.replace(old, new)
        reply = await hub.call(method, where, tokens["rival"], **call.rest)
        bodies.add((reply.status_code, reply.content))

    assert len(bodies) == 1
    assert bodies.pop()[0] == 404


async def test_the_challenge_tells_where_to_get_a_token_and_for_what(hub: Hub) -> None:
    whole = f"{hub.org}/apps/demo"
    realm = 'Bearer realm="http://127.0.0.1:8701/v2/token",service="127.0.0.1:8701"'

    pull = await hub.call("GET", "manifests/v1", "")
    push = await hub.call("POST", "blobs/uploads/", "")
    check = await hub.call("GET", "/v2/", "")

    assert pull.headers["WWW-Authenticate"] == f'{realm},scope="repository:{whole}:pull"'
    assert push.headers["WWW-Authenticate"] == f'{realm},scope="repository:{whole}:pull,push"'
    assert check.headers["WWW-Authenticate"] == realm


async def test_a_name_that_is_none_is_not_repeated_in_the_challenge(hub: Hub) -> None:
    quoted = await hub.call("GET", "/v2/a%22,x=%22b/tags/list", "")
    broken = await hub.call("GET", "/v2/a%0d%0aX-Evil:%201/tags/list", "")

    assert (quoted.status_code, "scope" in quoted.headers["WWW-Authenticate"]) == (401, False)
    assert (broken.status_code, "X-Evil" in broken.headers) == (404, False)


async def test_a_login_gets_a_token_that_opens_the_registry(hub: Hub) -> None:
    await hub.publish(LAYER, tag="v1")
    token = await hub.make_token("apps/demo", minutes=5)

    reply = await hub.call("GET", "/v2/token?service=x&scope=y", "", headers=password(token))

    given = reply.json()
    assert (given["token"], given["access_token"]) == (token, token)
    assert 290 <= given["expires_in"] <= 300
    assert (await hub.call("GET", "manifests/v1", given["token"])).status_code == 200
    hub.clock.advance(301)
    assert (await hub.call("GET", "manifests/v1", given["token"])).status_code == 401


@pytest.mark.parametrize(
    "sent",
    ["Basic", "Basic x", "Basic ????", "Basic {other}", "Basic {colon}", "Bearer", "{token}",
     "Bearer {token} x", "Basic {bare}"],
)  # fmt: skip
async def test_credentials_are_sent_in_the_known_ways_only(hub: Hub, sent: str) -> None:
    other = base64.b64encode(f"somebody:{hub.token}".encode()).decode()
    colon = base64.b64encode(b"exclave:").decode()
    value = sent.format(token=hub.token, other=other, colon=colon, bare=hub.token)

    for path in ("/v2/", "/v2/token"):
        reply = await hub.call("GET", path, "", headers={"Authorization": value})
        assert reply.status_code == 401


async def test_a_password_works_without_the_detour(hub: Hub) -> None:
    reply = await hub.call("GET", "/v2/", "", headers=password(hub.token))

    assert reply.status_code == 200
    assert reply.headers["Docker-Distribution-Api-Version"] == "registry/2.0"


async def test_a_blob_is_mounted_only_from_where_it_may_be_pulled(hub: Hub) -> None:
    await hub.push(b"secret", "private/data")
    digest = digest_of(b"secret")
    narrow = await hub.make_token("apps/*", push=True)
    source = f"{hub.org}/private/data"

    reply = await hub.call("POST", f"blobs/uploads/?mount={digest}&from={source}", narrow)

    assert reply.status_code == 202
    assert (await hub.call("GET", f"blobs/{digest}", narrow)).status_code == 404


async def test_orgs_share_no_bytes_and_no_names(hub: Hub) -> None:
    await hub.publish(LAYER, tag="v1")
    rival = await make_admin(hub.deps, hub.deps.ids.new("org").replace("_", "-"))
    other = Hub(hub.deps, hub.clock, hub.http, rival, "")
    token = await other.make_token(push=True)

    document = make_manifest(LAYER)
    for data in (EMPTY, LAYER):
        head = await other.call("HEAD", f"blobs/{digest_of(data)}", token)
        assert head.status_code == 404
    kind = {"Content-Type": "application/vnd.oci.image.manifest.v1+json"}
    reply = await other.call("PUT", "manifests/v1", token, content=document, headers=kind)
    assert reply.json()["errors"][0]["code"] == "MANIFEST_BLOB_UNKNOWN"
    query = f"mount={DIGEST}&from={hub.org}/apps/demo"
    reply = await other.call("POST", f"blobs/uploads/?{query}", token)
    assert reply.status_code == 202


async def test_an_install_without_an_app_reaches_nothing(hub: Hub) -> None:
    await hub.publish(LAYER, tag="v1")
    queue = await make_install(hub.deps, hub.admin.user, "lonely")
    token = (await enrol(hub.deps, hub.admin.user, queue)).token

    assert (await hub.call("GET", "/v2/", token)).status_code == 200
    assert (await hub.call("GET", "manifests/v1", token)).status_code == 404


async def test_an_org_that_asks_too_much_is_told_when_to_come_back(hub: Hub) -> None:
    hub.deps.rates.limits = Limits(org=2)

    answers = [(await hub.call("GET", "tags/list")).status_code for _ in range(12)]
    refused = await hub.call("GET", "tags/list")
    hub.clock.advance(int(refused.headers["Retry-After"]))
    later = await hub.call("GET", "tags/list")

    assert answers[-1] == refused.status_code == 429
    assert 429 not in answers[:10]
    assert refused.json()["errors"][0]["code"] == "TOOMANYREQUESTS"
    assert later.status_code != 429
