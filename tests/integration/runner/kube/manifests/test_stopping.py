"""Cancelled applies, leftovers, namespaces and things that belong to others."""

import asyncio
import json
from typing import Any

from exclave.base.json_values import JsonObject
from exclave.wire.jobs import Reason
from tests.integration.runner.kube.manifests.objects import config_map, deployment, write
from tests.support.manifests import ManifestHarness


def config_path(bench: ManifestHarness, name: str) -> str:
    return f"/api/v1/namespaces/{bench.namespace}/configmaps/{name}"


async def test_a_cancelled_apply_ends_at_once_and_the_next_one_goes_on(
    bench: ManifestHarness,
) -> None:
    hanging = write(config_map("a", v="1"), deployment("web", bed_fail="hang"))
    planned = await bench.plan(hanging)
    running = asyncio.create_task(bench.apply(planned, timeout_s=600.0))
    async with asyncio.timeout(30):
        while not bench.cluster.exists(config_path(bench, "a")):  # noqa: ASYNC110 - a real cluster
            await asyncio.sleep(0.05)

    bench.stop.request(Reason.CANCELLED, 1.0)
    stopped = await asyncio.wait_for(running, 30)

    assert (stopped.outcome.state, stopped.outcome.reason) == ("cancelled", "cancelled")
    again = await bench.deploy(write(deployment("web")))
    assert (again.outcome.state, again.outcome.message) == ("succeeded", "")
    assert not bench.cluster.exists(config_path(bench, "a"))


async def test_a_rollout_that_never_ends_is_explained_when_time_is_up(
    bench: ManifestHarness,
) -> None:
    planned = await bench.plan(write(deployment("web", bed_fail="unready")))

    applied = await bench.apply(planned, timeout_s=14.0)

    assert applied.outcome.reason is Reason.ROLLOUT_FAILED
    assert "container app runs, but is not ready" in applied.outcome.message


async def test_an_object_that_a_finalizer_holds_is_told_and_not_forgotten(
    bench: ManifestHarness,
) -> None:
    held = json.loads(json.dumps(config_map("held", v="1")))
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await bench.deploy(json.dumps(held))

    planned = await bench.plan(destroy=True)
    torn = await bench.apply(planned, destroy=True, timeout_s=13.0)

    assert torn.outcome.reason is Reason.LEFTOVERS
    assert torn.outcome.message == (
        f"ConfigMap/{bench.namespace}/held waits for finalizer example.com/hold"
    )
    live: Any = dict(bench.cluster.request("GET", config_path(bench, "held")))
    live["metadata"] = {**live["metadata"], "finalizers": []}
    bench.cluster.request("PUT", config_path(bench, "held"), live)
    again = await bench.plan(destroy=True)
    assert again.outputs["noop"] is True


async def test_a_missing_namespace_is_created_and_removed_where_asked(
    bench: ManifestHarness,
) -> None:
    bench.namespace = f"{bench.namespace}-made"
    planned = await bench.plan(write(config_map("a", v="1")))
    document = await bench.read_plan(planned)
    applied = await bench.apply(planned)

    torn = await bench.tear_down(teardown={"namespace": True})

    assert document["notes"] == [f"the namespace `{bench.namespace}` does not exist and is created"]
    assert applied.outcome.state == "succeeded"
    assert (torn.outcome.state, torn.outcome.message) == ("succeeded", "")
    assert not bench.cluster.exists(f"/api/v1/namespaces/{bench.namespace}")


async def test_an_object_of_another_part_is_refused(bench: ManifestHarness) -> None:
    mine: JsonObject = config_map("shared", v="1")
    await bench.deploy(write(mine))

    other = await bench.plan(write(mine), workspace="component:other")

    assert other.outcome.reason is Reason.OBJECT_REFUSED
    assert "it belongs to the part" in other.outcome.message


async def test_a_definition_and_an_object_of_its_kind_are_deployed_together(
    bench: ManifestHarness,
) -> None:
    group = f"{bench.namespace}.example.com"
    schema: JsonObject = {
        "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    }
    version: JsonObject = {"name": "v1", "served": True, "storage": True, "schema": schema}
    definition: JsonObject = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"databases.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "Database", "plural": "databases"},
            "versions": [version],
        },
    }
    database: JsonObject = {
        "apiVersion": f"{group}/v1",
        "kind": "Database",
        "metadata": {"name": "db"},
        "spec": {"size": 1},
    }

    applied = await bench.deploy(write(database, definition))

    assert (applied.outcome.state, applied.outcome.message) == ("succeeded", "")
    path = f"/apis/{group}/v1/namespaces/{bench.namespace}/databases/db"
    assert bench.cluster.exists(path)
    torn = await bench.tear_down()
    assert torn.outcome.state == "succeeded"
    assert not bench.cluster.exists(path)
    bench.cluster.request(
        "DELETE", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/databases.{group}"
    )


async def test_a_rolling_update_reports_its_lowest_number_of_endpoints(
    bench: ManifestHarness,
) -> None:
    service: JsonObject = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    }
    await bench.deploy(write(service, deployment("web", replicas=3)))

    updated = await bench.deploy(write(service, deployment("web", replicas=3, image="shop/web:2")))

    assert (updated.outcome.state, updated.outcome.message) == ("succeeded", "")
    assert f"Service {bench.namespace}/web: no downtime" in updated.text


async def test_a_cancelled_apply_ends_although_the_control_plane_is_silent(
    bench: ManifestHarness,
) -> None:
    planned = await bench.plan(write(config_map("a", v="1"), deployment("web", bed_fail="hang")))
    running = asyncio.create_task(bench.apply(planned, hand_in=False, timeout_s=600.0))
    async with asyncio.timeout(30):
        while not bench.cluster.exists(config_path(bench, "a")):  # noqa: ASYNC110 - a real cluster
            await asyncio.sleep(0.05)

    bench.base.api.down = True
    bench.stop.request(Reason.CANCELLED, 1.0)
    stopped = await asyncio.wait_for(running, 30)

    assert stopped.outcome.state == "cancelled"
