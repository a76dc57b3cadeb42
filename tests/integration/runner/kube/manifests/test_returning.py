"""Rollbacks by digest, ignored changes, and objects that stay."""

import json
from typing import Any

from exclave.base.json_values import JsonObject
from exclave.wire.jobs import Reason
from tests.integration.runner.kube.manifests.objects import config_map, deployment, write
from tests.support.manifests import ManifestHarness

OLD = write(config_map("settings", v="1"), config_map("extra", v="1"))
NEW = write(config_map("settings", v="2"))


def read_settings(bench: ManifestHarness) -> object:
    path = f"/api/v1/namespaces/{bench.namespace}/configmaps/settings"
    return bench.cluster.request("GET", path)["data"]


async def test_a_rollback_plans_the_objects_of_an_earlier_plan(bench: ManifestHarness) -> None:
    earlier = await bench.plan(OLD)
    await bench.apply(earlier)
    await bench.deploy(NEW)
    digest = earlier.outputs["digest"]
    ref = {"execution_id": earlier.offer.execution_id, "digest": digest}

    planned = await bench.plan(rollback_to=ref)
    applied = await bench.apply(planned)

    actions = {one["name"]: one["action"] for one in (await bench.read_plan(planned))["resources"]}
    assert actions == {"settings": "update", "extra": "create"}
    assert (applied.outcome.state, applied.outcome.message) == ("succeeded", "")
    assert read_settings(bench) == {"v": "1"}


async def test_a_rollback_to_a_plan_with_another_digest_is_refused(bench: ManifestHarness) -> None:
    earlier = await bench.plan(OLD)
    ref = {"execution_id": earlier.offer.execution_id, "digest": f"sha256:{'0' * 64}"}

    planned = await bench.plan(rollback_to=ref)

    assert planned.outcome.reason is Reason.PLAN_MISSING


async def test_a_scan_leaves_out_what_a_rule_names(bench: ManifestHarness) -> None:
    await bench.deploy(OLD)
    path = f"/api/v1/namespaces/{bench.namespace}/configmaps/settings"
    live = dict(bench.cluster.request("GET", path))
    bench.cluster.request("PUT", path, {**live, "data": {"v": "9"}})

    drifted = await bench.plan(scan=True)
    quiet = await bench.plan(scan=True, ignore=[{"kind": "ConfigMap", "path": "data.v"}])

    assert (drifted.outputs["noop"], quiet.outputs["noop"]) == (False, True)


async def test_replicas_that_an_autoscaler_sets_are_no_drift(bench: ManifestHarness) -> None:
    scaler: JsonObject = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": 1,
            "maxReplicas": 5,
        },
    }
    await bench.deploy(write(deployment("web", replicas=1)))
    base = f"/apis/autoscaling/v2/namespaces/{bench.namespace}/horizontalpodautoscalers"
    bench.cluster.request("POST", base, scaler)
    path = f"/apis/apps/v1/namespaces/{bench.namespace}/deployments/web"
    live: Any = json.loads(json.dumps(bench.cluster.request("GET", path)))
    live["spec"]["replicas"] = 3
    bench.cluster.request("PUT", path, live)

    scanned = await bench.plan(scan=True)

    assert scanned.outputs["noop"] is True


async def test_an_object_that_is_marked_to_stay_leaves_the_set_and_stays(
    bench: ManifestHarness,
) -> None:
    kept: Any = json.loads(json.dumps(config_map("extra", v="1")))
    kept["metadata"]["annotations"] = {"exclave.dev/prune": "false"}
    await bench.deploy(write(config_map("settings", v="1"), kept))

    planned = await bench.plan(NEW)
    applied = await bench.apply(planned)

    actions = {one["name"]: one["action"] for one in (await bench.read_plan(planned))["resources"]}
    assert actions == {"settings": "update", "extra": "keep"}
    assert applied.outcome.state == "succeeded"
    assert bench.cluster.exists(f"/api/v1/namespaces/{bench.namespace}/configmaps/extra")


async def test_volumes_that_a_stateful_set_made_stay_unless_the_app_removes_them(
    bench: ManifestHarness,
) -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    stateful: Any = json.loads(json.dumps(deployment("db")))
    stateful["kind"] = "StatefulSet"
    stateful["metadata"]["annotations"] = {"exclave.dev/wait": "none"}
    stateful["spec"] |= {"serviceName": "db", "volumeClaimTemplates": [claim]}
    await bench.deploy(json.dumps(stateful))
    claims = f"/api/v1/namespaces/{bench.namespace}/persistentvolumeclaims/data-db-0"

    planned = await bench.plan(destroy=True)
    torn = await bench.apply(planned, destroy=True)

    actions = {one["name"]: one["action"] for one in (await bench.read_plan(planned))["resources"]}
    assert actions == {"db": "delete", "data-db-0": "keep"}
    assert torn.outcome.state == "succeeded"
    assert bench.cluster.exists(claims)
