"""How requests fare with an API server that is busy, slow, gone, or no API server at all."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest

from exclave.base.clock import SystemClock
from exclave.base.ids import SeededRandomness
from exclave.base.json_values import JsonObject
from exclave.client.retry import RetryPolicy
from exclave.runner.kube.api.client import ClusterClient
from exclave.runner.kube.api.connection import Connection, Credential, NoCredential
from exclave.runner.kube.api.discovery import Resource
from exclave.runner.kube.api.errors import (
    ApiRefused,
    ClusterUnreachable,
    KindUnknown,
    ReplyTooLarge,
    classify,
)
from exclave.runner.kube.api.exchange import ApiRequest, Exchange
from exclave.runner.kube.api.lists import Selection
from exclave.runner.kube.api.objects import ObjectId
from exclave.runner.kube.api.watch import Changed, Listed, Removed, WatchEvent
from exclave.wire.jobs import Reason
from tests.support.scripted_api import Reply, RotatingToken, ScriptedApi, refuse, say

IMPATIENT = RetryPolicy(first_s=0.01, longest_s=0.02, give_up_s=0.5)
MAP: JsonObject = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "c", "namespace": "n"},
}
MAP_ID = ObjectId("", "v1", "ConfigMap", "n", "c")
PATH = "/api/v1/namespaces/n/configmaps/c"
MAPS = "/api/v1/namespaces/n/configmaps"
CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps", namespaced=True)
CORE = say(
    {
        "kind": "APIGroupDiscoveryList",
        "items": [
            {
                "metadata": {},
                "versions": [
                    {
                        "version": "v1",
                        "resources": [
                            {
                                "resource": "configmaps",
                                "responseKind": {"kind": "ConfigMap"},
                                "scope": "Namespaced",
                            }
                        ],
                    }
                ],
            }
        ],
    }
)
NO_GROUPS = say({"kind": "APIGroupDiscoveryList", "items": []})


@asynccontextmanager
async def serve(
    script: Mapping[str, list[Reply]],
    credential: Credential | None = None,
    patience: RetryPolicy = IMPATIENT,
) -> AsyncIterator[tuple[ScriptedApi, ClusterClient]]:
    async with ScriptedApi({"/api": [CORE], "/apis": [NO_GROUPS], **script}) as api:
        connection = Connection(api.url, None, credential or NoCredential())
        clock, randomness = SystemClock(), SeededRandomness(1)
        async with ClusterClient(connection, clock, randomness, patience=patience) as client:
            yield api, client


@pytest.mark.parametrize("status", [429, 502, 503, 504])
async def test_a_read_is_repeated_while_the_server_is_busy(status: int) -> None:
    async with serve({PATH: [Reply(status), Reply(status), say(MAP)]}) as (api, client):
        value = await client.get(MAP_ID)

    assert value == MAP
    assert api.count("GET", PATH) == 3


async def test_the_pause_is_the_one_that_the_server_asks_for() -> None:
    busy = refuse(429, "TooManyRequests", "later", **{"Retry-After": "7"})
    async with serve({PATH: [busy, say(MAP)]}) as (api, client):
        with pytest.raises(ApiRefused) as refused:
            await client.get(MAP_ID)

    assert refused.value.status.retry_after_s == 7
    assert api.count("GET", PATH) == 1  # seven seconds are more than the patience of the test


async def test_a_read_and_an_apply_survive_a_lost_reply() -> None:
    async with serve({PATH: [Reply(drop=True), say(MAP)]}) as (api, client):
        await client.get(MAP_ID)
    async with serve({PATH: [Reply(drop=True), say(MAP)]}) as (second, client):
        await client.apply(MAP, manager="exclave")

    assert api.count("GET", PATH) == 2
    assert second.count("PATCH", PATH) == 2


@pytest.mark.parametrize("reply", [Reply(drop=True), Reply(503), Reply(504), Reply(502)])
async def test_a_create_whose_reply_is_lost_is_never_repeated(reply: Reply) -> None:
    async with serve({MAPS: [reply, say(MAP)]}) as (api, client):
        with pytest.raises((ClusterUnreachable, ApiRefused)) as failed:
            await client.create(MAP, manager="exclave")

    assert api.count("POST", MAPS) == 1
    assert classify(failed.value) is Reason.CLUSTER_UNREACHABLE


async def test_a_create_that_was_not_admitted_is_repeated() -> None:
    busy = refuse(429, "TooManyRequests", "later")
    asked = refuse(503, "ServiceUnavailable", "starting", **{"Retry-After": "0"})
    async with serve({MAPS: [busy, asked, say(MAP)]}) as (api, client):
        await client.create(MAP, manager="exclave")

    assert api.count("POST", MAPS) == 3


async def test_an_address_without_a_server_is_unreachable_and_named() -> None:
    async with ScriptedApi({}) as api:
        address = api.url
    connection = Connection(address, None, NoCredential())
    async with ClusterClient(
        connection, SystemClock(), SeededRandomness(1), patience=IMPATIENT
    ) as client:
        with pytest.raises(ClusterUnreachable, match=address) as failed:
            await client.read_version()

    assert failed.value.facts["cause"] == "refused"
    assert classify(failed.value) is Reason.CLUSTER_UNREACHABLE


async def test_a_server_that_never_answers_ends_by_the_timeout() -> None:
    async with ScriptedApi({"/version": [Reply(hang=True)]}) as api:
        connection = Connection(api.url, None, NoCredential())
        exchange = Exchange(connection, SystemClock(), SeededRandomness(1), IMPATIENT)
        async with exchange:
            with pytest.raises(ClusterUnreachable) as failed:
                await exchange.call(ApiRequest("GET", "/version", timeout_s=0.2))

    assert failed.value.facts["cause"] == "timeout"


@pytest.mark.parametrize("body", [b"<html>a login page</html>", b"[]", b"", b"\xff\xfe"])
async def test_what_is_no_api_server_is_said_so(body: bytes) -> None:
    async with serve({"/version": [Reply(200, body)]}) as (_, client):
        with pytest.raises(ClusterUnreachable, match="is no API server"):
            await client.read_version()


async def test_a_reply_has_a_largest_size() -> None:
    async with ScriptedApi({"/version": [Reply(200, b'"' + b"x" * 5000)]}) as api:
        connection = Connection(api.url, None, NoCredential())
        async with Exchange(connection, SystemClock(), SeededRandomness(1), IMPATIENT) as exchange:
            with pytest.raises(ReplyTooLarge):
                await exchange.call(ApiRequest("GET", "/version", max_reply=4096))


async def test_a_refused_token_is_renewed_once() -> None:
    unknown = refuse(401, "Unauthorized", "Unauthorized")
    async with serve({PATH: [unknown, say(MAP)]}, RotatingToken("old", "new")) as (api, client):
        await client.get(MAP_ID)
    async with serve({PATH: [unknown]}, RotatingToken("old", "new", "newer")) as (second, client):
        with pytest.raises(ApiRefused) as refused:
            await client.get(MAP_ID)

    tokens = [seen.headers["authorization"] for seen in api.seen if seen.path == PATH]
    assert tokens == ["Bearer old", "Bearer new"]
    assert second.count("GET", PATH) == 2
    assert classify(refused.value) is Reason.ACCESS_DENIED


async def test_an_old_server_is_asked_group_by_group() -> None:
    script = {
        "/api": [say({"kind": "APIVersions", "versions": ["v1"]})],
        "/apis": [
            say(
                {
                    "kind": "APIGroupList",
                    "groups": [
                        {
                            "name": "apps",
                            "preferredVersion": {"groupVersion": "apps/v1"},
                            "versions": [
                                {"groupVersion": "apps/v1beta1"},
                                {"groupVersion": "apps/v1"},
                            ],
                        },
                        {"name": "broken", "versions": [{"groupVersion": "broken/v1"}]},
                    ],
                }
            )
        ],
        "/api/v1": [
            say(
                {
                    "groupVersion": "v1",
                    "resources": [
                        {"name": "pods", "kind": "Pod", "namespaced": True, "verbs": ["get"]},
                        {"name": "pods/log", "kind": "Pod", "namespaced": True},
                    ],
                }
            )
        ],
        "/apis/apps/v1": [
            say(
                {
                    "groupVersion": "apps/v1",
                    "resources": [{"name": "deployments", "kind": "Deployment", "namespaced": True}],
                }
            )
        ],
        "/apis/apps/v1beta1": [say({"groupVersion": "apps/v1beta1", "resources": []})],
        "/apis/broken/v1": [Reply(503)],
    }  # fmt: skip
    async with serve(script) as (_, client):
        discovery = await client.discover()

    pods = discovery.find("", "v1", "Pod")
    deployments = discovery.find_any_version("apps", "Deployment")
    assert pods is not None
    assert (pods.plural, pods.namespaced, pods.verbs) == ("pods", True, frozenset({"get"}))
    assert deployments is not None
    assert deployments.path("n", "web") == "/apis/apps/v1/namespaces/n/deployments/web"
    assert discovery.unavailable == ("broken/v1",)


async def test_an_unknown_kind_is_refused_before_a_request_is_sent() -> None:
    async with serve({}) as (api, client):
        with pytest.raises(KindUnknown, match="Widget") as refused:
            await client.get(ObjectId("x.dev", "v1", "Widget", "n", "w"))

    assert classify(refused.value) is Reason.OBJECT_REFUSED
    assert {seen.path for seen in api.seen} == {"/api", "/apis"}


async def test_names_cannot_leave_their_place_in_a_path() -> None:
    resource = Resource("", "v1", "ConfigMap", "configmaps", namespaced=True)

    assert resource.path("a/../b", "c?d#e") == "/api/v1/namespaces/a%2F..%2Fb/configmaps/c%3Fd%23e"


async def test_a_client_for_plans_sends_no_change() -> None:
    async with ScriptedApi({"/api": [CORE], "/apis": [NO_GROUPS], PATH: [say(MAP)]}) as api:
        connection = Connection(api.url, None, NoCredential())
        async with ClusterClient(
            connection, SystemClock(), SeededRandomness(1), read_only=True
        ) as client:
            await client.apply(MAP, manager="exclave", dry_run=True)
            with pytest.raises(RuntimeError, match="a plan changes nothing"):
                await client.apply(MAP, manager="exclave")
            with pytest.raises(RuntimeError, match="a plan changes nothing"):
                await client.delete(MAP_ID, uid="u")

    changes = [seen for seen in api.seen if seen.method not in {"GET", "HEAD"}]
    assert [seen.target for seen in changes] == [
        f"{PATH}?fieldManager=exclave&force=false&fieldValidation=Strict&dryRun=All"
    ]


async def test_a_delete_names_the_uid_and_finds_out_that_it_is_gone() -> None:
    gone = refuse(404, "NotFound", "not found")
    async with serve({PATH: [say({"kind": "Status"}), gone]}) as (api, client):
        first = await client.delete(MAP_ID, uid="u-1", propagation="Foreground")
        second = await client.delete(MAP_ID, uid="u-1")

    assert (first, second) == (True, False)
    sent = json.loads(api.seen[-2].body)
    assert sent["preconditions"] == {"uid": "u-1"}
    assert sent["propagationPolicy"] == "Foreground"


def event(kind: str, name: str, version: str) -> bytes:
    metadata = {"name": name, "resourceVersion": version}
    return json.dumps({"type": kind, "object": {"metadata": metadata}}).encode() + b"\n"


def listing(version: str, *names: str) -> Reply:
    items = [{"metadata": {"name": name}} for name in names]
    return say({"metadata": {"resourceVersion": version}, "items": items})


async def follow(client: ClusterClient, count: int) -> list[str]:
    lines: list[str] = []
    events = client.watch(CONFIG_MAPS, Selection("n"))
    async with asyncio.timeout(10):
        async for one in events:
            lines.append(show(one))
            if len(lines) == count:
                break
    await events.aclose()
    return lines


def show(one: WatchEvent) -> str:
    def name(value: object) -> str:
        assert isinstance(value, dict)
        return str(value["metadata"]["name"])

    match one:
        case Listed(objects):
            return "listed " + " ".join(map(name, objects))
        case Changed(value):
            return f"changed {name(value)}"
        case Removed(value):
            return f"removed {name(value)}"


async def test_a_watch_goes_on_where_its_connection_broke() -> None:
    first = Reply(chunks=(event("ADDED", "b", "6"), event("BOOKMARK", "", "9"), b'{"type": "MOD'))
    second = Reply(chunks=(event("DELETED", "b", "10"),))
    async with serve({MAPS: [listing("5", "a"), first, second]}) as (api, client):
        lines = await follow(client, 3)

    assert lines == ["listed a", "changed b", "removed b"]
    versions = [
        seen.target.partition("resourceVersion=")[2].partition("&")[0] for seen in api.seen[-2:]
    ]
    assert versions == ["5", "9"]


@pytest.mark.parametrize(
    "expired",
    [
        refuse(410, "Expired", "too old"),
        Reply(chunks=(b'{"type": "ERROR", "object": {"kind": "Status", "code": 410}}\n',)),
    ],
)
async def test_a_watch_lists_again_when_the_server_forgot_its_place(expired: Reply) -> None:
    script = [
        listing("5", "a"),
        expired,
        listing("8", "b"),
        Reply(chunks=(event("ADDED", "c", "9"),)),
    ]
    async with serve({MAPS: script}) as (_, client):
        lines = await follow(client, 3)

    assert lines == ["listed a", "listed b", "changed c"]


async def test_a_token_that_expires_during_a_watch_is_renewed() -> None:
    script = [
        listing("5", "a"),
        Reply(chunks=(event("ADDED", "b", "6"),)),
        refuse(401, "Unauthorized", "expired"),
        Reply(chunks=(event("ADDED", "c", "7"),)),
    ]
    async with serve({MAPS: script}, RotatingToken("old", "new")) as (api, client):
        lines = await follow(client, 3)

    assert lines == ["listed a", "changed b", "changed c"]
    assert api.seen[-1].headers["authorization"] == "Bearer new"


async def test_a_watch_of_garbage_ends_as_unreachable() -> None:
    script = [listing("5"), Reply(chunks=(b"<html>\n",))]
    async with serve({MAPS: script}) as (_, client):
        with pytest.raises(ClusterUnreachable, match="not an event"):
            await follow(client, 2)


async def test_a_list_is_read_page_by_page_and_again_when_it_expired() -> None:
    first = say({"metadata": {"continue": "more"}, "items": [{"metadata": {"name": "a"}}]})
    expired = refuse(410, "Expired", "the continue token is too old")
    script = [first, expired, first, listing("7", "b")]
    async with serve({MAPS: script}) as (_, client):
        listed = await client.list_objects(CONFIG_MAPS, Selection("n"))

    assert [item["metadata"] for item in listed.items] == [{"name": "a"}, {"name": "b"}]
    assert listed.items[0]["kind"] == "ConfigMap"
    assert listed.resource_version == "7"


@pytest.mark.parametrize(
    ("status", "reason", "message", "wanted"),
    [
        (403, "Forbidden", 'User "x" cannot create resource "pods"', Reason.ACCESS_DENIED),
        (403, "Forbidden", "exceeded quota: q, requested: pods=1", Reason.QUOTA),
        (403, "Forbidden", 'violates PodSecurity "restricted:latest"', Reason.OBJECT_REFUSED),
        (400, "BadRequest", 'admission webhook "x" denied the request', Reason.OBJECT_REFUSED),
        (409, "Conflict", "conflict with kubectl", Reason.PLAN_STALE),
        (409, "AlreadyExists", "already exists", Reason.PLAN_STALE),
        (422, "Invalid", "field is immutable", Reason.OBJECT_REFUSED),
        (500, "", "failed to create typed patch object", Reason.OBJECT_REFUSED),
        (500, "InternalError", "failed calling webhook x", Reason.OBJECT_REFUSED),
        (500, "InternalError", "etcd is away", Reason.CLUSTER_UNREACHABLE),
    ],
)
async def test_each_refusal_has_its_reason(
    status: int, reason: str, message: str, wanted: Reason
) -> None:
    async with serve({PATH: [refuse(status, reason, message)]}) as (_, client):
        with pytest.raises(ApiRefused) as refused:
            await client.apply(MAP, manager="exclave")

    assert classify(refused.value) is wanted
    assert message in refused.value.message
    assert refused.value.advice
