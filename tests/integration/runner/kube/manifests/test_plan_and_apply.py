"""Objects are planned, applied, pruned, scanned and torn down on a real API server."""

import json

from exclave.wire.jobs import Reason
from tests.integration.runner.kube.manifests.objects import config_map, deployment, write
from tests.support.manifests import ManifestHarness

APP = write(config_map("settings", size="1"), deployment("web", replicas=2))


def path(bench: ManifestHarness, collection: str, name: str) -> str:
    groups = {"deployments": "/apis/apps/v1", "configmaps": "/api/v1", "secrets": "/api/v1"}
    return f"{groups[collection]}/namespaces/{bench.namespace}/{collection}/{name}"


async def test_a_first_deploy_creates_what_the_plan_showed_and_waits_until_it_is_ready(
    bench: ManifestHarness,
) -> None:
    planned = await bench.plan(APP)
    document = await bench.read_plan(planned)
    assert not bench.cluster.exists(path(bench, "configmaps", "settings"))

    applied = await bench.apply(planned)

    assert [(one["address"], one["action"]) for one in document["resources"]] == [
        (f"ConfigMap/{bench.namespace}/settings", "create"),
        (f"apps/Deployment/{bench.namespace}/web", "create"),
    ]
    assert (applied.outcome.state, applied.outcome.message) == ("succeeded", "")
    live = bench.cluster.request("GET", path(bench, "deployments", "web"))
    assert json.loads(json.dumps(live))["status"]["availableReplicas"] == 2
    assert applied.outputs["serial"] == 2
    assert applied.outputs["outputs"]["resources"][0][1] == "ConfigMap"


async def test_a_second_plan_is_empty(bench: ManifestHarness) -> None:
    await bench.deploy(APP)

    planned = await bench.plan(APP)

    assert planned.outputs["noop"] is True
    assert (await bench.read_plan(planned))["resources"] == []


async def test_a_change_is_shown_field_by_field_and_nothing_else_is_touched(
    bench: ManifestHarness,
) -> None:
    await bench.deploy(APP)

    planned = await bench.plan(write(config_map("settings", size="2"), deployment("web", 2)))
    document = await bench.read_plan(planned)

    (changed,) = document["resources"]
    assert [(one["path"], one["before"], one["after"]) for one in changed["attributes"]] == [
        ("data.size", "1", "2")
    ]
    assert (await bench.apply(planned)).outcome.state == "succeeded"


async def test_an_object_that_left_the_text_is_pruned(bench: ManifestHarness) -> None:
    await bench.deploy(APP)

    planned = await bench.plan(write(deployment("web", replicas=2)))
    actions = [
        (one["address"], one["action"]) for one in (await bench.read_plan(planned))["resources"]
    ]
    applied = await bench.apply(planned)

    assert actions == [(f"ConfigMap/{bench.namespace}/settings", "delete")]
    assert applied.outcome.state == "succeeded"
    assert not bench.cluster.exists(path(bench, "configmaps", "settings"))


async def test_a_scan_finds_a_hand_edit_and_nothing_else(bench: ManifestHarness) -> None:
    await bench.deploy(APP)
    clean = await bench.plan(scan=True)
    live = dict(bench.cluster.request("GET", path(bench, "configmaps", "settings")))
    edited = {**live, "data": {"size": "7", "added": "by hand"}}
    bench.cluster.request("PUT", path(bench, "configmaps", "settings"), edited)

    drifted = await bench.plan(scan=True)

    assert clean.outputs["noop"] is True
    assert drifted.outputs["noop"] is False
    (found,) = (await bench.read_plan(drifted))["resources"]
    assert [one["path"] for one in found["attributes"]] == ["data.size"]


async def test_a_teardown_leaves_nothing(bench: ManifestHarness) -> None:
    await bench.deploy(APP)

    torn = await bench.tear_down()

    assert torn.outcome.state == "succeeded"
    assert not bench.cluster.exists(path(bench, "configmaps", "settings"))
    assert not bench.cluster.exists(path(bench, "deployments", "web"))
    assert (await bench.plan(destroy=True)).outputs["noop"] is True


async def test_an_object_that_was_changed_since_the_plan_makes_it_stale(
    bench: ManifestHarness,
) -> None:
    await bench.deploy(APP)
    planned = await bench.plan(write(config_map("settings", size="2"), deployment("web", 2)))
    live = dict(bench.cluster.request("GET", path(bench, "configmaps", "settings")))
    edited = {**live, "data": {"size": "1", "added": "by hand"}}
    bench.cluster.request("PUT", path(bench, "configmaps", "settings"), edited)

    applied = await bench.apply(planned)

    assert applied.outcome.reason is Reason.PLAN_STALE
    assert f"ConfigMap/{bench.namespace}/settings" in applied.outcome.message
    after = bench.cluster.request("GET", path(bench, "configmaps", "settings"))
    assert after["data"] == {"size": "1", "added": "by hand"}


async def test_a_plan_for_an_older_state_is_stale(bench: ManifestHarness) -> None:
    planned = await bench.plan(APP)
    await bench.deploy(APP)

    applied = await bench.apply(planned)

    assert applied.outcome.reason is Reason.PLAN_STALE


async def test_fields_of_somebody_else_are_shown_and_taken_only_as_approved(
    bench: ManifestHarness,
) -> None:
    await bench.deploy(APP)
    scale = f"{path(bench, 'deployments', 'web')}/scale"
    current = dict(bench.cluster.request("GET", scale))
    bench.cluster.request(
        "PUT", f"{scale}?fieldManager=kubectl", {**current, "spec": {"replicas": 3}}
    )

    planned = await bench.plan(APP)
    (changed,) = (await bench.read_plan(planned))["resources"]
    applied = await bench.apply(planned)

    assert changed["taken_from"] == [{"path": "spec.replicas", "manager": "kubectl (scale)"}]
    assert applied.outcome.state == "succeeded"
    live = json.loads(json.dumps(bench.cluster.request("GET", path(bench, "deployments", "web"))))
    assert live["spec"]["replicas"] == 2


async def test_a_secret_is_filled_in_and_shown_nowhere(bench: ManifestHarness) -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "keys"},
        "stringData": {"token": "((exclave:secret:token))"},
    }

    planned = await bench.plan(json.dumps(secret))
    applied = await bench.apply(planned)

    assert applied.outcome.state == "succeeded"
    document = json.dumps(await bench.read_plan(planned))
    assert '"sensitive": true' in document
    for text in (document, planned.text, applied.text, applied.outcome.model_dump_json()):
        assert "canary-secret-value" not in text
        assert "Y2FuYXJ5LXNlY3JldC12YWx1ZQ" not in text
    live = json.loads(json.dumps(bench.cluster.request("GET", path(bench, "secrets", "keys"))))
    assert live["data"]["token"] == "Y2FuYXJ5LXNlY3JldC12YWx1ZQ=="


async def test_a_broken_rollout_fails_with_its_cause_in_one_line(bench: ManifestHarness) -> None:
    broken = write(deployment("web", bed_fail="oom"))

    applied = await bench.deploy(broken)

    assert applied.outcome.reason is Reason.ROLLOUT_FAILED
    assert applied.outcome.message.startswith(
        f"Deployment {bench.namespace}/web: container app was killed for its memory limit"
    )
    assert "\n" not in applied.outcome.message


async def test_everything_that_the_server_refuses_is_told_at_once(bench: ManifestHarness) -> None:
    wrong = dict(config_map("a")) | {"dta": {"x": "1"}}
    other = dict(config_map("b")) | {"data": {"n": 1}}

    planned = await bench.plan(write(wrong, other))

    assert planned.outcome.reason is Reason.OBJECT_REFUSED
    lines = planned.outcome.message.splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        f"ConfigMap/{bench.namespace}/a",
        f"ConfigMap/{bench.namespace}/b",
    ]


async def test_an_immutable_field_means_a_replacement_which_the_plan_names(
    bench: ManifestHarness,
) -> None:
    await bench.deploy(write(deployment("web")))
    moved = json.loads(json.dumps(deployment("web")))
    moved["spec"]["selector"]["matchLabels"] = {"app": "other"}
    moved["spec"]["template"]["metadata"]["labels"] = {"app": "other"}

    planned = await bench.plan(json.dumps(moved))
    (changed,) = (await bench.read_plan(planned))["resources"]
    applied = await bench.apply(planned)

    assert changed["action"] == "replace"
    assert any(one["forces_replacement"] for one in changed["attributes"])
    assert (applied.outcome.state, applied.outcome.message) == ("succeeded", "")
