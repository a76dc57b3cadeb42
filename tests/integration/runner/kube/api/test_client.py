"""The client against a real API server."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from exclave.base.clock import SystemClock
from exclave.base.ids import SystemRandomness
from exclave.base.json_values import JsonObject, object_or_empty
from exclave.base.secrets import Secret
from exclave.runner.kube.access.tls import make_tls
from exclave.runner.kube.access.tokens import FixedToken
from exclave.runner.kube.api.client import ClusterClient, LogSelection
from exclave.runner.kube.api.connection import Connection, NoCredential
from exclave.runner.kube.api.discovery import Resource
from exclave.runner.kube.api.errors import ApiRefused, ClusterUnreachable, classify
from exclave.runner.kube.api.lists import Selection
from exclave.runner.kube.api.objects import ObjectId, identify, read_objects
from exclave.runner.kube.api.watch import Changed, Listed, Removed
from exclave.wire.jobs import Reason
from tests.support.certificates import make_certificate
from tests.support.kubernetes import Cluster

CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps", namespaced=True)


def connect(cluster: Cluster, token: str = "") -> Connection:
    secret = Secret(token or cluster.token)
    return Connection(cluster.server, make_tls(cluster.ca), FixedToken(secret))


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[ClusterClient]:
    async with ClusterClient(connect(cluster), SystemClock(), SystemRandomness()) as opened:
        yield opened


def make_map(namespace: str, name: str, **data: str) -> JsonObject:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def uid(value: JsonObject) -> str:
    return str(object_or_empty(value["metadata"])["uid"])


async def test_the_server_tells_its_version_and_its_kinds(client: ClusterClient) -> None:
    version = await client.read_version()
    discovery = await client.discover()

    deployment = discovery.find("apps", "v1", "Deployment")
    assert version.startswith("v1.")
    assert deployment is not None
    assert (deployment.plural, deployment.namespaced) == ("deployments", True)
    assert "patch" in deployment.verbs
    assert discovery.find("", "v1", "Namespace") is not None
    assert "apps/v1/Deployment" in discovery.list_api_versions()


async def test_an_object_is_applied_read_replaced_and_deleted(
    client: ClusterClient, namespace: str
) -> None:
    applied = await client.apply(make_map(namespace, "c", a="1"), manager="exclave")
    object_id = identify(applied)
    replaced = await client.replace({**applied, "data": {"a": "2"}}, manager="exclave")
    with pytest.raises(ApiRefused) as stale:
        await client.replace({**applied, "data": {"a": "3"}}, manager="exclave")
    live = await client.get(object_id)
    with pytest.raises(ApiRefused) as other:
        await client.delete(object_id, uid="00000000-0000-0000-0000-000000000000")
    first = await client.delete(object_id, uid=uid(applied))
    second = await client.delete(object_id, uid=uid(applied))

    assert live == replaced
    assert classify(stale.value) is Reason.PLAN_STALE
    assert classify(other.value) is Reason.PLAN_STALE
    assert (first, second, await client.get(object_id)) == (True, False, None)


async def test_a_dry_run_answers_and_changes_nothing(client: ClusterClient, namespace: str) -> None:
    applied = await client.apply(make_map(namespace, "c", a="1"), manager="exclave")
    planned = await client.apply(make_map(namespace, "c", a="2"), manager="exclave", dry_run=True)
    created = await client.create(make_map(namespace, "d"), manager="exclave", dry_run=True)
    deleted = await client.delete(identify(applied), uid=uid(applied), dry_run=True)

    assert (planned["data"], deleted) == ({"a": "2"}, True)
    assert await client.get(identify(applied)) == applied
    assert await client.get(identify(created)) is None


async def test_a_conflict_names_the_field_and_its_owner(
    client: ClusterClient, namespace: str
) -> None:
    await client.apply(make_map(namespace, "c", a="1"), manager="somebody")
    with pytest.raises(ApiRefused) as conflict:
        await client.apply(make_map(namespace, "c", a="2"), manager="exclave")
    forced = await client.apply(make_map(namespace, "c", a="2"), manager="exclave", force=True)

    (cause,) = conflict.value.status.causes
    assert (conflict.value.status.code, conflict.value.status.reason) == (409, "Conflict")
    assert cause.field == ".data.a"
    assert "somebody" in cause.message
    assert forced["data"] == {"a": "2"}


async def test_an_unknown_field_and_an_immutable_one_are_refused_by_name(
    client: ClusterClient, namespace: str
) -> None:
    with pytest.raises(ApiRefused) as unknown:
        await client.apply({**make_map(namespace, "c"), "dat": {}}, manager="exclave")
    frozen = {**make_map(namespace, "f", a="1"), "immutable": True}
    await client.apply(frozen, manager="exclave")
    with pytest.raises(ApiRefused) as immutable:
        await client.apply({**frozen, "data": {"a": "2"}}, manager="exclave")

    assert classify(unknown.value) is Reason.OBJECT_REFUSED
    assert ".dat" in unknown.value.message
    assert immutable.value.status.causes[0].field == "data"
    assert classify(immutable.value) is Reason.OBJECT_REFUSED


async def test_a_watch_lists_and_then_follows(client: ClusterClient, namespace: str) -> None:
    await client.apply(make_map(namespace, "a"), manager="exclave")
    events = client.watch(CONFIG_MAPS, Selection(namespace, fields="metadata.name=a"))
    async with asyncio.timeout(20):
        listed = await anext(events)
        changed_value = await client.apply(make_map(namespace, "a", k="v"), manager="exclave")
        changed = await anext(events)
        await client.delete(identify(changed_value), uid=uid(changed_value))
        removed = await anext(events)
    await events.aclose()

    assert isinstance(listed, Listed)
    assert [identify(value).name for value in listed.objects] == ["a"]
    assert isinstance(changed, Changed)
    assert changed.object["data"] == {"k": "v"}
    assert isinstance(removed, Removed)


async def test_lists_go_over_pages_and_know_their_kind(
    client: ClusterClient, namespace: str
) -> None:
    for number in range(3):
        await client.apply(make_map(namespace, f"c{number}"), manager="exclave")

    listed = await client.list_objects(CONFIG_MAPS, Selection(namespace))

    names = [identify(value) for value in listed.items]
    assert ObjectId("", "v1", "ConfigMap", namespace, "c1") in names
    assert listed.resource_version


async def test_a_credential_without_rights_is_denied_and_may_ask_for_them(
    cluster: Cluster, namespace: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default/token"
    status = object_or_empty(cluster.request("POST", path, {"spec": {}})["status"])
    connection = connect(cluster, str(status["token"]))
    async with ClusterClient(connection, SystemClock(), SystemRandomness()) as weak:
        with pytest.raises(ApiRefused) as denied:
            await weak.apply(make_map(namespace, "c"), manager="exclave")
        review = await weak.review_access("patch", CONFIG_MAPS, namespace)

    assert classify(denied.value) is Reason.ACCESS_DENIED
    assert "cannot patch resource" in denied.value.message
    assert not review.allowed


async def test_a_wrong_token_is_denied_and_a_wrong_authority_is_unreachable(
    cluster: Cluster, tmp_path: Path
) -> None:
    stranger, _ = make_certificate(tmp_path)
    distrusted = Connection(cluster.server, make_tls(stranger.read_text()), NoCredential())
    async with ClusterClient(connect(cluster, "wrong"), SystemClock(), SystemRandomness()) as wrong:
        with pytest.raises(ApiRefused) as denied:
            await wrong.read_cluster_uid()
    async with ClusterClient(distrusted, SystemClock(), SystemRandomness()) as careful:
        with pytest.raises(ClusterUnreachable) as unreachable:
            await careful.read_version()

    assert classify(denied.value) is Reason.ACCESS_DENIED
    assert unreachable.value.facts["cause"] == "tls"


async def test_the_log_of_a_container_is_read(client: ClusterClient, namespace: str) -> None:
    text = f"""
apiVersion: v1
kind: Pod
metadata: {{name: p, namespace: {namespace}}}
spec:
  containers: [{{name: app, image: x}}]
"""
    (pod,) = read_objects(text)
    pods = (await client.discover()).require(pod.id)
    await client.apply(pod.value, manager="exclave")
    events = client.watch(pods, Selection(namespace))
    async with asyncio.timeout(30):
        async for event in events:
            seen = event.objects if isinstance(event, Listed) else [event.object]
            if any(map(_is_running, seen)):
                break
    await events.aclose()

    log = await client.read_log(namespace, "p", LogSelection(container="app", tail_lines=1))

    assert log.count("\n") == 1


def _is_running(value: JsonObject) -> bool:
    return object_or_empty(value.get("status")).get("phase") == "Running"
