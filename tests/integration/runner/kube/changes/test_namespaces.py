"""A namespace of a part is removed unless something of others is in it."""

import time
from uuid import uuid4

from exclave.base.clock import SystemClock
from exclave.base.json_values import JsonObject, object_or_empty, text_or_empty
from exclave.runner.kube.changes.namespaces import NamespaceRemover, name_namespace
from tests.support.kubernetes import Cluster
from tests.support.manifests import open_client

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PATIENCE_S = 60.0


def make_namespace(cluster: Cluster) -> tuple[str, str]:
    """Make a namespace; return its name and its uid."""
    name = f"test-{uuid4().hex[:12]}-own"
    made = cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    return name, text_or_empty(object_or_empty(made["metadata"])["uid"])


def define_widgets(cluster: Cluster) -> str:
    """Define a namespaced kind; return the group of it once the server serves it."""
    group = f"g{uuid4().hex[:8]}.example.com"
    names: JsonObject = {"plural": "widgets", "kind": "Widget"}
    schema: JsonObject = {"openAPIV3Schema": {"type": "object"}}
    version: JsonObject = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec: JsonObject = {
        "group": group,
        "scope": "Namespaced",
        "names": names,
        "versions": [version],
    }
    metadata = {"name": f"widgets.{group}"}
    cluster.request("POST", DEFINITIONS, {"metadata": metadata, "spec": spec})
    until = time.monotonic() + PATIENCE_S
    while not cluster.exists(f"/apis/{group}/v1/widgets"):
        assert time.monotonic() < until, "the kind is never served"
        time.sleep(0.05)
    return group


def forget_widgets(cluster: Cluster, group: str) -> None:
    """Remove the definition; return once the server no longer serves the kind."""
    cluster.request("DELETE", f"{DEFINITIONS}/widgets.{group}")
    until = time.monotonic() + PATIENCE_S
    while cluster.exists(f"/apis/{group}/v1/widgets"):
        assert time.monotonic() < until, "the kind is served for ever"
        time.sleep(0.05)


async def test_a_kind_that_was_removed_meanwhile_keeps_no_namespace(cluster: Cluster) -> None:
    name, uid = make_namespace(cluster)
    group = define_widgets(cluster)
    clock = SystemClock()
    async with open_client(cluster) as client:
        until = clock.monotonic() + PATIENCE_S
        while (await client.discover()).find(group, "v1", "Widget") is None:
            assert clock.monotonic() < until, "the kind is never discovered"
            client.forget_discovery()
        forget_widgets(cluster, group)

        stays = await NamespaceRemover(client, clock, lambda _, __: None).remove(
            name, uid, until=clock.monotonic() + PATIENCE_S
        )

        assert stays == ""
        assert await client.get(name_namespace(name)) is None


async def test_a_namespace_with_something_of_others_stays(cluster: Cluster) -> None:
    name, uid = make_namespace(cluster)
    path = f"/api/v1/namespaces/{name}"
    cluster.request("POST", f"{path}/configmaps", {"metadata": {"name": "theirs"}})
    clock = SystemClock()
    async with open_client(cluster) as client:
        stays = await NamespaceRemover(client, clock, lambda _, __: None).remove(
            name, uid, until=clock.monotonic() + PATIENCE_S
        )

    assert stays == f"the namespace `{name}` stays, because of ConfigMap/{name}/theirs in it"
    assert cluster.exists(path)
    cluster.api.delete(path)
