"""What plans of releases show, refuse and never do."""

import json

import pytest

from exclave.base.json_values import JsonObject, object_or_empty
from exclave.wire.jobs import OutcomeState, Reason
from tests.support.helm import HelmHarness

HOOK = """apiVersion: batch/v1
kind: Job
metadata:
  name: "{{ .Release.Name }}-migrate"
  annotations: {helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-delete-policy: before-hook-creation}
spec:
  backoffLimit: 0
  template:
    metadata: {annotations: {{ .Values.hook | default dict | toJson }}}
    spec:
      restartPolicy: Never
      containers: [{name: migrate, image: registry.example/migrate:1}]
"""
CRD = """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %s.%s.example.com}
spec:
  group: %s.example.com
  scope: Namespaced
  names: {plural: %s, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""


async def test_secrets_of_the_customer_are_in_no_log_plan_record_or_argument(
    bench: HelmHarness,
) -> None:
    values = ["password: ((exclave:secret:db_password))\n"]
    planned = await bench.plan_release(values=values)
    applied = await bench.apply_release(planned)
    record = bench.call_helm("get", "values", "web", "-o", "json")
    secret = object_or_empty(bench.get("secrets/web-generated").get("data"))

    assert applied.outcome.state is OutcomeState.SUCCEEDED, applied.text
    assert secret["given"] == "Y2FuYXJ5LXNlY3JldC12YWx1ZQ=="
    assert json.loads(record) == {"password": "((exclave:secret:db_password))"}
    assert "canary" not in json.dumps(await bench.read_plan(planned))
    assert "canary" not in planned.text + applied.text
    assert "canary" not in json.dumps(applied.outcome.outputs)


async def test_a_plan_writes_nothing(bench: HelmHarness) -> None:
    # The cluster makes a ConfigMap of its own in every namespace, some time after it was made.
    own = "metadata.name!=kube-root-ca.crt"

    planned = await bench.plan_release()

    assert planned.outcome.state is OutcomeState.SUCCEEDED, planned.text
    assert bench.get("secrets")["items"] == []
    assert bench.get(f"configmaps?fieldSelector={own}")["items"] == []


async def test_a_hook_is_shown_and_run_and_its_failure_has_a_reason(bench: HelmHarness) -> None:
    bench.write_files({"templates/hook.yaml": HOOK})
    planned = await bench.plan_release()
    applied = await bench.apply_release(planned)
    failed = await bench.deploy(sets={"hook.bed/fail": "crash"}, timeout_s=30.0)

    document = await bench.read_plan(planned)
    hook = next(entry for entry in document["resources"] if entry["action"] == "run")
    assert hook["events"] == ["pre-install", "pre-upgrade"]
    assert applied.outcome.state is OutcomeState.SUCCEEDED, applied.text
    assert failed.outcome.reason is Reason.HOOK_FAILED, failed.text
    assert f"hook Job {bench.namespace}/web-migrate: container" in failed.outcome.message
    assert "last line: panic: cannot reach the database" in failed.outcome.message


async def test_a_teardown_removes_what_hooks_made(bench: HelmHarness) -> None:
    bench.write_files({"templates/hook.yaml": HOOK})
    await bench.deploy()
    path = f"/apis/batch/v1/namespaces/{bench.namespace}/jobs/web-migrate"
    assert bench.cluster.exists(path)

    removed = await bench.deploy(destroy=True)

    assert removed.outcome.state is OutcomeState.SUCCEEDED, removed.text
    assert not bench.cluster.exists(path)


async def test_an_object_of_nobody_is_refused_unless_ownership_may_be_taken(
    bench: HelmHarness,
) -> None:
    path = f"/api/v1/namespaces/{bench.namespace}/configmaps"
    bench.cluster.request("POST", path, {"metadata": {"name": "web-settings"}, "data": {"a": "b"}})

    refused = await bench.plan_release()
    planned = await bench.plan_release(take_ownership=True)
    applied = await bench.apply_release(planned, take_ownership=True)

    assert refused.outcome.reason is Reason.OBJECT_REFUSED
    assert f"ConfigMap/{bench.namespace}/web-settings" in refused.outcome.message
    assert "belongs to nobody" in refused.outcome.message
    document = await bench.read_plan(planned)
    adopted = next(entry for entry in document["resources"] if entry["name"] == "web-settings")
    assert "adopted" in adopted["notes"][0]
    assert applied.outcome.state is OutcomeState.SUCCEEDED, applied.text


async def test_everything_that_the_server_refuses_is_named_at_once(bench: HelmHarness) -> None:
    broken = """apiVersion: v1
kind: Service
metadata: {name: "%s"}
spec: {ports: [{port: 80, wrong: 1}]}
"""
    bench.write_files({"templates/a.yaml": broken % "one", "templates/b.yaml": broken % "two"})

    planned = await bench.plan_release()

    assert planned.outcome.reason is Reason.OBJECT_REFUSED
    assert "/one" in planned.outcome.message
    assert "/two" in planned.outcome.message


async def test_crds_of_the_chart_are_made_before_objects_of_their_kinds(
    bench: HelmHarness,
) -> None:
    group = bench.namespace.replace("-", "")
    crd = CRD % ("widgets", group, group, "widgets")
    widget = f"apiVersion: {group}.example.com/v1\nkind: Widget\nmetadata: {{name: one}}\n"
    bench.write_files({"crds/widgets.yaml": crd, "templates/widget.yaml": widget})

    planned = await bench.plan_release()
    applied = await bench.apply_release(planned)

    document = await bench.read_plan(planned)
    assert any("rendered without looking into the cluster" in note for note in document["notes"])
    assert document["outside_images"] == ["registry.example/app:1 (not pinned)"]
    kinds = {entry["type"].split()[1] for entry in document["resources"]}
    assert {"CustomResourceDefinition", "Widget"} <= kinds
    assert applied.outcome.state is OutcomeState.SUCCEEDED, applied.text
    path = f"/apis/{group}.example.com/v1/namespaces/{bench.namespace}/widgets/one"
    assert bench.cluster.exists(path)
    await bench.deploy(sets={"replicas": "2"})
    teardown = await bench.plan_release(destroy=True)
    removed = await bench.apply_release(teardown, destroy=True)
    kept = [
        one for one in (await bench.read_plan(teardown))["resources"] if one["action"] == "keep"
    ]
    assert [one["name"] for one in kept] == [f"widgets.{group}.example.com"]
    assert kept[0]["notes"] == ["removing it would remove every object of its kind"]
    assert removed.outcome.state is OutcomeState.SUCCEEDED, removed.text
    assert not bench.cluster.exists(path)
    crd_path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert bench.cluster.exists(f"{crd_path}/widgets.{group}.example.com")
    bench.cluster.api.delete(f"{crd_path}/widgets.{group}.example.com")


async def test_a_new_namespace_is_shown_and_made(bench: HelmHarness) -> None:
    bench.namespace = f"{bench.namespace}-new"
    planned = await bench.plan_release()
    applied = await bench.apply_release(planned)

    actions = await bench.read_actions(planned)
    assert actions[f"Namespace/{bench.namespace}"] == "create"
    assert applied.outcome.state is OutcomeState.SUCCEEDED, applied.text
    bench.cluster.api.delete(f"/api/v1/namespaces/{bench.namespace}")


async def test_a_teardown_removes_the_namespace_only_if_nothing_of_others_is_in_it(
    bench: HelmHarness,
) -> None:
    bench.namespace = f"{bench.namespace}-own"
    await bench.deploy()
    path = f"/api/v1/namespaces/{bench.namespace}"
    theirs: JsonObject = {"metadata": {"name": "theirs"}}
    bench.cluster.request("POST", f"{path}/configmaps", theirs)

    planned = await bench.plan_release(destroy=True)
    kept = await bench.deploy(destroy=True, teardown={"namespace": True})
    stays = bench.cluster.exists(f"{path}/configmaps/theirs")
    bench.cluster.request("DELETE", f"{path}/configmaps/theirs")
    removed = await bench.deploy(destroy=True, teardown={"namespace": True})

    notes = (await bench.read_plan(planned))["notes"]
    assert notes == [
        f"the namespace {bench.namespace} stays: others may use it (teardown.namespace removes it)"
    ]
    assert f"stays, because of ConfigMap/{bench.namespace}/theirs in it" in kept.text
    assert stays
    assert removed.outcome.state is OutcomeState.SUCCEEDED, removed.text
    assert not bench.cluster.exists(path)


async def test_a_field_of_somebody_else_is_taken_over_by_name(bench: HelmHarness) -> None:
    await bench.deploy()
    path = f"/apis/apps/v1/namespaces/{bench.namespace}/deployments/web/scale"
    scale = bench.cluster.request("GET", path)
    spec = {**object_or_empty(scale.get("spec")), "replicas": 3}
    bench.cluster.request("PUT", path, {**scale, "spec": spec})

    planned = await bench.plan_release()

    document = await bench.read_plan(planned)
    web = next(entry for entry in document["resources"] if entry["type"] == "apps/v1 Deployment")
    assert web["taken_from"][0]["path"] == "spec.replicas"
    assert "scale" in web["taken_from"][0]["manager"]


async def test_a_rollback_brings_back_what_was_deployed_with_the_same_password(
    bench: HelmHarness,
) -> None:
    first = await bench.plan_release()
    await bench.apply_release(first)
    before = object_or_empty(bench.get("secrets/web-generated").get("data"))
    await bench.deploy(sets={"greeting": "bye", "extra": "true"})

    earlier = {"execution_id": first.offer.execution_id, "digest": first.outputs["digest"]}
    planned = await bench.plan_release(rollback_to=earlier)
    applied = await bench.apply_release(planned)

    assert applied.outcome.state is OutcomeState.SUCCEEDED, applied.text
    assert object_or_empty(bench.get("secrets/web-generated").get("data")) == before
    assert not bench.has("configmaps/web-extra")


async def test_an_object_that_a_finalizer_holds_is_a_leftover_that_the_next_teardown_removes(
    bench: HelmHarness,
) -> None:
    await bench.deploy()
    path = f"/api/v1/namespaces/{bench.namespace}/configmaps/web-settings"
    headers = {"Content-Type": "application/merge-patch+json"}
    held = {"metadata": {"finalizers": ["bed.example.com/hold"]}}
    assert bench.cluster.api.patch(path, json=held, headers=headers).is_success

    left = await bench.deploy(destroy=True, timeout_s=15.0)
    free: dict[str, object] = {"metadata": {"finalizers": None}}
    assert bench.cluster.api.patch(path, json=free, headers=headers).is_success
    removed = await bench.deploy(destroy=True)

    assert left.outcome.reason is Reason.LEFTOVERS, left.text
    assert "waits for finalizer bed.example.com/hold" in left.outcome.message
    assert removed.outcome.state is OutcomeState.SUCCEEDED, removed.text


async def test_a_change_between_plan_and_apply_makes_the_plan_stale(bench: HelmHarness) -> None:
    await bench.deploy()
    planned = await bench.plan_release(sets={"greeting": "bye"})
    path = f"/api/v1/namespaces/{bench.namespace}/configmaps/web-settings"
    patch = {"data": {"greeting": "meanwhile"}}
    headers = {"Content-Type": "application/merge-patch+json"}
    assert bench.cluster.api.patch(path, json=patch, headers=headers).is_success

    applied = await bench.apply_release(planned)

    assert applied.outcome.reason is Reason.PLAN_STALE
    assert "web-settings" in applied.outcome.message


@pytest.mark.parametrize("driver", ["secret", "configmap"])
async def test_records_are_kept_where_the_app_says(bench: HelmHarness, driver: str) -> None:
    planned = await bench.plan_release(driver=driver)
    applied = await bench.apply_release(planned, driver=driver)
    again = await bench.plan_release(sets={"greeting": "bye"})

    kind = "secrets" if driver == "secret" else "configmaps"
    assert applied.outcome.state is OutcomeState.SUCCEEDED, applied.text
    assert bench.has(f"{kind}/sh.helm.release.v1.web.v1")
    assert again.outcome.state is OutcomeState.SUCCEEDED, again.text
    warnings = (await bench.read_plan(planned))["warnings"]
    is_warned = any("readable by everybody" in warning for warning in warnings)
    assert is_warned == (driver == "configmap")


async def test_rollback_test_and_history_of_helm_itself_work(bench: HelmHarness) -> None:
    await bench.deploy()
    await bench.deploy(sets={"greeting": "bye"})

    bench.call_helm("rollback", "web", "1")

    data = object_or_empty(bench.get("configmaps/web-settings").get("data"))
    assert data["greeting"] == "hello"
