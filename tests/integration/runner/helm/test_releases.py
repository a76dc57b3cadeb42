"""Releases from plan to teardown: real Helm, a real API server."""

import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from exclave.base.json_values import object_or_empty, text_or_empty
from exclave.base.secrets import Secret
from exclave.runner.kube.pull_secrets import PullLogin, name_pull_secret
from exclave.runner.tools.finder import ToolFinder, ToolSettings
from exclave.wire.jobs import OutcomeState, Reason
from tests.support.helm import HelmHarness
from tests.support.kubernetes import Cluster, open_namespace
from tests.support.kubernetes_tools import need_helm
from tests.support.terraform import PATH
from tests.support.tools import need_tool


async def test_a_release_is_planned_applied_and_then_there_is_nothing_left_to_do(
    bench: HelmHarness,
) -> None:
    planned = await bench.plan_release()
    actions = await bench.read_actions(planned)
    applied = await bench.apply_release(planned)
    password = object_or_empty(bench.get("secrets/web-generated").get("data")).get("password")

    assert planned.outcome.state is OutcomeState.SUCCEEDED, planned.text
    assert set(actions.values()) == {"create"}
    assert f"apps/Deployment/{bench.namespace}/web" in actions
    assert applied.outcome.state is OutcomeState.SUCCEEDED, applied.text
    outputs = applied.outputs["outputs"]
    assert outputs["release"]["revision"] == 1
    assert outputs["release"]["version"] == "1.2.3"
    assert outputs["services"][bench.namespace]["web"]["metadata"]["name"] == "web"
    plan = await bench.read_plan(planned)
    assert base64.b64decode(text_or_empty(password)).decode() not in json.dumps(plan)


async def test_a_second_plan_shows_the_fields_that_change_and_hides_secrets(
    bench: HelmHarness,
) -> None:
    await bench.deploy()

    planned = await bench.plan_release(sets={"greeting": "bye", "replicas": "2"})
    document = await bench.read_plan(planned)

    changes = {entry["name"]: entry for entry in document["resources"]}
    assert changes["web-settings"]["attributes"][0]["path"] == "data.greeting"
    assert changes["web-settings"]["attributes"][0]["after"] == "bye"
    assert changes["web"]["attributes"][0]["path"] == "spec.replicas"
    secret = changes["web-generated"]["attributes"][0]
    assert (secret["sensitive"], secret["before"], secret["after"]) == (True, None, None)


async def test_what_was_approved_is_what_is_applied_also_if_it_is_random(
    bench: HelmHarness,
) -> None:
    planned = await bench.plan_release()
    other = await bench.plan_release()

    applied = await bench.apply_release(planned)

    assert planned.outputs["digest"] != other.outputs["digest"]
    assert applied.outcome.state is OutcomeState.SUCCEEDED, applied.text
    stale = await bench.apply_release(other)
    assert stale.outcome.reason is Reason.PLAN_STALE


async def test_objects_that_left_the_chart_are_removed(bench: HelmHarness) -> None:
    await bench.deploy(sets={"extra": "true"})
    assert bench.has("configmaps/web-extra")

    planned = await bench.plan_release()
    applied = await bench.apply_release(planned)

    actions = await bench.read_actions(planned)
    assert actions[f"ConfigMap/{bench.namespace}/web-extra"] == "delete"
    assert applied.outcome.state is OutcomeState.SUCCEEDED, applied.text
    assert not bench.has("configmaps/web-extra")


async def test_a_teardown_leaves_nothing(bench: HelmHarness) -> None:
    await bench.deploy()

    removed = await bench.deploy(destroy=True)

    assert removed.outcome.state is OutcomeState.SUCCEEDED, removed.text
    assert not bench.has("deployments/web")
    assert not bench.has("secrets/web-generated")
    listed = bench.get("secrets?labelSelector=owner=helm")
    assert listed["items"] == []


PULLED = {"repository": "registry.example/app", "tag": "1", "digest": "sha256:" + "a" * 64}
HOOK = """
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, annotations: {helm.sh/hook: pre-install}}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: app, image: "registry.example/app:1"}]}
"""


async def read_login() -> PullLogin | None:
    return PullLogin("registry.example", "acme", Secret("registry-pass-word"))


@pytest.mark.parametrize("is_hook", [False, True])
async def test_pods_of_a_release_pull_with_the_login_of_the_registry_until_the_teardown(
    bench: HelmHarness, is_hook: bool
) -> None:
    bench.helm = replace(bench.helm, read_pull_login=read_login)
    name = name_pull_secret(bench.queue, "web")
    sets = {"image": "other.example/app:1"} if is_hook else {}
    bench.write_files({"templates/hook.yaml": HOOK} if is_hook else {})

    applied = await bench.deploy(images=[{**PULLED, "pull_secret": True}], sets=sets)
    workload: Any = bench.get("deployments/web")
    there = bench.has(f"secrets/{name}")
    removed = await bench.deploy(destroy=True)

    assert applied.outcome.state is OutcomeState.SUCCEEDED, applied.text
    named = workload["spec"]["template"]["spec"].get("imagePullSecrets")
    assert named == (None if is_hook else [{"name": name}])
    assert there
    assert removed.outcome.state is OutcomeState.SUCCEEDED, removed.text
    assert not bench.has(f"secrets/{name}")


async def test_a_scan_finds_a_hand_edit_and_nothing_else(bench: HelmHarness) -> None:
    await bench.deploy()
    clean = await bench.plan_release(scan=True)
    path = f"/api/v1/namespaces/{bench.namespace}/configmaps/web-settings"
    answer = bench.cluster.api.patch(
        path,
        json={"data": {"greeting": "hacked", "added": "x"}},
        headers={"Content-Type": "application/merge-patch+json"},
    )
    assert answer.is_success

    drifted = await bench.plan_release(scan=True)

    assert clean.outputs["noop"] is True
    actions = await bench.read_actions(drifted)
    assert actions == {f"ConfigMap/{bench.namespace}/web-settings": "update"}
    document = await bench.read_plan(drifted)
    assert [entry["path"] for entry in document["resources"][0]["attributes"]] == ["data.greeting"]


async def test_a_rolling_update_reports_that_there_was_no_downtime(bench: HelmHarness) -> None:
    await bench.deploy(sets={"replicas": "2"})

    applied = await bench.deploy(sets={"replicas": "2", "image": "registry.example/app:2"})

    assert applied.outcome.state is OutcomeState.SUCCEEDED, applied.text
    assert "no downtime" in applied.text


async def test_two_releases_in_two_namespaces_do_not_know_each_other(
    bench: HelmHarness, cluster: Cluster
) -> None:
    first = bench.namespace
    await bench.deploy(sets={"greeting": "one"}, workspace="component:one")
    with open_namespace(cluster) as second:
        bench.namespace = second
        await bench.deploy(sets={"greeting": "two"}, workspace="component:two")
        removed = await bench.deploy(destroy=True, workspace="component:two")

        assert removed.outcome.state is OutcomeState.SUCCEEDED, removed.text
        assert not bench.has("deployments/web")
    bench.namespace = first
    data = object_or_empty(bench.get("configmaps/web-settings").get("data"))
    assert data["greeting"] == "one"


async def test_a_policy_sees_each_object_and_can_refuse_the_plan(bench: HelmHarness) -> None:
    rego = """package nuon
import rego.v1
deny contains msg if {
  input.review.kind.kind == "Deployment"
  input.review.object.spec.replicas > 3
  msg := "too many replicas"
}
"""
    opa = need_tool("opa")
    settings = ToolSettings(opa.parent, f"{need_helm().parent}:{PATH}", download=False)
    bench.helm = replace(bench.helm, finder=ToolFinder(settings))
    policies = [{"name": "replicas", "rego": rego}]

    refused = await bench.plan_release(sets={"replicas": "5"}, policies=policies)
    passed = await bench.plan_release(policies=policies)

    assert refused.outcome.reason is Reason.POLICY_DENIED, refused.text
    assert "too many replicas" in refused.outcome.message
    assert passed.outcome.state is OutcomeState.SUCCEEDED, passed.text
