"""Releases that somebody left half done: recovered by rule, or left alone with a reason."""

import asyncio
import os
import random
import signal
from pathlib import Path

import pytest

from exclave.base.json_values import list_or_empty, object_or_empty, text_or_empty
from exclave.runner.helm.records import (
    EXECUTION_LABEL,
    QUEUE_LABEL,
    encode_release,
    read_record,
)
from exclave.runner.processes import procfs
from exclave.wire.jobs import OutcomeState, Reason
from tests.support.helm import WORKSPACE, HelmHarness
from tests.support.kubernetes_tools import need_helm3
from tests.support.states import lose_state

KILLS = int(os.environ.get("EXCLAVE_TEST_KILLS", "4"))
"""How many moments are tried; each takes seconds, so few in every run and many by wish."""


HOLDING_HOOK = {
    "templates/hook.yaml": """{{- if .Values.holds }}
apiVersion: batch/v1
kind: Job
metadata:
  name: "{{ .Release.Name }}-goodbye"
  annotations: {helm.sh/hook: pre-delete}
spec:
  backoffLimit: 0
  template:
    metadata: {annotations: {bed/fail: hang}}
    spec:
      restartPolicy: Never
      containers: [{name: app, image: "registry.example/app:1"}]
{{- end }}
"""
}
"""A hook that, if a value wants it, lets an uninstall wait for ever."""


def list_statuses(bench: HelmHarness) -> list[str]:
    """Return the statuses of all revisions, the oldest first."""
    listed = list_or_empty(bench.get("secrets?labelSelector=owner=helm").get("items"))
    labels = [
        object_or_empty(object_or_empty(object_or_empty(item).get("metadata")).get("labels"))
        for item in listed
    ]
    ordered = sorted(labels, key=lambda entry: int(text_or_empty(entry.get("version"))))
    return [text_or_empty(entry.get("status")) for entry in ordered]


def mark_pending(
    bench: HelmHarness, labels: dict[str, str], status: str = "pending-upgrade"
) -> None:
    """Make the newest record one of an upgrade that has not ended, or of another status."""
    revision = len(list_statuses(bench))
    path = f"/api/v1/namespaces/{bench.namespace}/secrets/sh.helm.release.v1.web.v{revision}"
    holder = bench.cluster.request("GET", path)
    record = read_record("secret", holder)
    info = {**object_or_empty(record.release.get("info")), "status": status}
    data = encode_release("secret", {**record.release, "info": info})
    metadata = object_or_empty(holder.get("metadata"))
    marked = {**record.labels, "status": status, **labels}
    body = {**holder, "metadata": {**metadata, "labels": marked}, "data": {"release": data}}
    bench.cluster.request("PUT", path, body)


async def test_a_pending_release_of_a_dead_execution_is_recovered(bench: HelmHarness) -> None:
    await bench.deploy()
    mark_pending(bench, {EXECUTION_LABEL: "exe_dead", QUEUE_LABEL: str(bench.queue)})

    planned = await bench.plan_release(sets={"greeting": "bye"})
    applied = await bench.apply_release(planned)

    notes = (await bench.read_plan(planned))["notes"]
    assert any("revision 1 (pending-upgrade) is marked failed" in note for note in notes)
    assert applied.outcome.state is OutcomeState.SUCCEEDED, applied.text
    assert list_statuses(bench)[-1] == "deployed"


async def test_a_pending_release_of_somebody_else_is_left_alone_until_a_person_decides(
    bench: HelmHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exclave.runner.helm.plan._BUSY_PAUSE_S", 0.01)
    await bench.deploy()
    mark_pending(bench, {EXECUTION_LABEL: "exe_other", QUEUE_LABEL: "que_other"})

    busy = await bench.plan_release()
    taken = await bench.plan_release(take_over_release=True, sets={"greeting": "bye"})
    applied = await bench.apply_release(taken)

    assert busy.outcome.reason is Reason.RELEASE_BUSY
    assert "--take-over-release" in busy.outcome.message
    assert applied.outcome.state is OutcomeState.SUCCEEDED, applied.text


async def test_what_only_a_failed_revision_made_is_removed(bench: HelmHarness) -> None:
    await bench.deploy()
    failed = await bench.deploy(
        sets={"extra": "true", "annotations.bed/fail": "image"}, timeout_s=12.0
    )
    assert bench.has("configmaps/web-extra")

    repaired = await bench.deploy()

    assert failed.outcome.reason is Reason.ROLLOUT_FAILED
    assert "web" in failed.outcome.message
    assert repaired.outcome.state is OutcomeState.SUCCEEDED, repaired.text
    assert not bench.has("configmaps/web-extra")


async def test_a_first_install_that_failed_is_upgraded_by_the_next_deploy(
    bench: HelmHarness,
) -> None:
    failed = await bench.deploy(sets={"annotations.bed/fail": "crash"}, timeout_s=12.0)
    repaired = await bench.deploy()

    assert failed.outcome.reason is Reason.ROLLOUT_FAILED
    assert repaired.outcome.state is OutcomeState.SUCCEEDED, repaired.text


@pytest.mark.parametrize("seed", range(KILLS))
async def test_killing_helm_at_any_moment_is_repaired_by_the_next_deploy(
    bench: HelmHarness, seed: int
) -> None:
    rng = random.Random(seed)
    if seed % 2:
        await bench.deploy()
    planned = await bench.plan_release(sets={"extra": "true", "greeting": str(seed)})
    applying = asyncio.create_task(bench.apply_release(planned))
    await asyncio.sleep(rng.uniform(0.0, 1.2))
    for process in list_marked(bench):
        os.kill(process, signal.SIGKILL)
    await applying

    repaired = await bench.deploy(sets={"greeting": "last"})

    assert repaired.outcome.state is OutcomeState.SUCCEEDED, repaired.text
    assert list_statuses(bench)[-1] == "deployed"
    assert not bench.has("configmaps/web-extra")
    data = object_or_empty(bench.get("configmaps/web-settings").get("data"))
    assert data["greeting"] == "last"


async def test_a_teardown_whose_helm_is_killed_fails_and_the_next_one_removes_the_record(
    bench: HelmHarness,
) -> None:
    await bench.deploy()
    planned = await bench.plan_release(destroy=True)
    applying = asyncio.create_task(bench.apply_release(planned, destroy=True))
    for process in await await_marked(bench):
        os.kill(process, signal.SIGKILL)

    killed = await applying
    removed = await bench.deploy(destroy=True)

    assert "was ended by SIGKILL" in killed.outcome.message, killed.text
    assert removed.outcome.state is OutcomeState.SUCCEEDED, removed.text
    assert list_statuses(bench) == []
    assert not bench.has("configmaps/web-settings")


async def interrupt_teardown(bench: HelmHarness) -> None:
    """Kill Helm while it uninstalls the release and waits for a hook."""
    planned = await bench.plan_release(destroy=True)
    applying = asyncio.create_task(bench.apply_release(planned, destroy=True))
    await await_status(bench, "uninstalling")
    for process in await await_marked(bench):
        os.kill(process, signal.SIGKILL)
    await applying


async def await_status(bench: HelmHarness, status: str) -> None:
    """Wait until the newest record has a status."""
    for _ in range(1000):
        if list_statuses(bench)[-1:] == [status]:
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"the release never was {status}: {list_statuses(bench)}")


async def test_a_deploy_after_an_interrupted_teardown_goes_on_and_so_does_the_next_teardown(
    bench: HelmHarness,
) -> None:
    bench.write_files(HOLDING_HOOK)
    await bench.deploy(sets={"holds": "true"})
    await interrupt_teardown(bench)
    assert list_statuses(bench) == ["uninstalling"]

    planned = await bench.plan_release(sets={"greeting": "again"})
    redeployed = await bench.apply_release(planned)
    statuses = list_statuses(bench)
    removed = await bench.deploy(destroy=True)

    notes = (await bench.read_plan(planned))["notes"]
    assert any("revision 1 (uninstalling) is marked failed: the teardown" in note for note in notes)
    assert redeployed.outcome.state is OutcomeState.SUCCEEDED, redeployed.text
    assert statuses[-1] == "deployed"
    assert removed.outcome.state is OutcomeState.SUCCEEDED, removed.text
    assert list_statuses(bench) == []


async def test_an_uninstall_by_somebody_else_is_left_alone_until_a_person_decides(
    bench: HelmHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exclave.runner.helm.plan._BUSY_PAUSE_S", 0.01)
    await bench.deploy()
    mark_pending(bench, {}, "uninstalling")

    busy = await bench.plan_release()
    taken = await bench.deploy(take_over_release=True, sets={"greeting": "bye"})

    assert busy.outcome.reason is Reason.RELEASE_BUSY
    assert "the release is uninstalling at revision 1" in busy.outcome.message
    assert taken.outcome.state is OutcomeState.SUCCEEDED, taken.text


def list_marked(bench: HelmHarness) -> list[int]:
    """Return the processes that jobs have started and that still run."""
    return [
        process
        for folder in bench.executions.glob("*")
        for process in procfs.list_marked(folder.name)
    ]


async def await_marked(bench: HelmHarness) -> list[int]:
    """Wait until a job has started a process."""
    for _ in range(5000):
        if marked := list_marked(bench):
            return marked
        await asyncio.sleep(0.005)
    raise AssertionError("no job started a process")


async def test_a_release_that_helm_3_made_is_taken_over(bench: HelmHarness, tmp_path: Path) -> None:
    chart = tmp_path / "module"
    options = ("--set", "annotations.old=yes")
    bench.call_helm("install", "web", str(chart), *options, helm=need_helm3())

    planned = await bench.plan_release(sets={"greeting": "bye"})
    document = await bench.read_plan(planned)
    web = next(entry for entry in document["resources"] if entry["type"] == "apps/v1 Deployment")
    removed = {entry["path"]: entry["after"] for entry in web["attributes"]}
    applied = await bench.apply_release(planned)
    again = await bench.plan_release(scan=True)

    assert removed["spec.template.metadata.annotations.old"] is None
    assert applied.outcome.state is OutcomeState.SUCCEEDED, applied.text
    assert list_statuses(bench) == ["superseded", "deployed"]
    assert again.outputs["noop"] is True


@pytest.mark.parametrize("lost", ["state", "records", "both"])
async def test_a_release_whose_state_or_records_were_lost_is_adopted_from_the_cluster(
    bench: HelmHarness, lost: str
) -> None:
    await bench.deploy(sets={"extra": "true"})
    if lost != "records":
        await lose_state(bench.deps, bench.user.org, bench.queue, WORKSPACE)
    if lost != "state":
        records = f"/api/v1/namespaces/{bench.namespace}/secrets?labelSelector=owner=helm"
        bench.cluster.request("DELETE", records)

    planned = await bench.plan_release(adopt=True)
    actions = await bench.read_actions(planned)
    applied = await bench.apply_release(planned)
    gone = not bench.has("configmaps/web-extra")
    removed = await bench.deploy(destroy=True)

    assert actions[f"ConfigMap/{bench.namespace}/web-extra"] == "delete"
    assert applied.outcome.state is OutcomeState.SUCCEEDED, applied.text
    assert gone
    assert removed.outcome.state is OutcomeState.SUCCEEDED, removed.text
    assert not bench.has("configmaps/web-settings")
    assert list_statuses(bench) == []


async def test_a_failed_upgrade_goes_back_to_the_release_that_was_deployed(
    bench: HelmHarness,
) -> None:
    earlier = await bench.plan_release(sets={"greeting": "hello"})
    await bench.apply_release(earlier)
    password = object_or_empty(bench.get("secrets/web-generated").get("data"))
    digest = earlier.outputs["digest"]
    ref = {"execution_id": earlier.offer.execution_id, "digest": digest}
    planned = await bench.plan_release(
        sets={"greeting": "bye", "extra": "true", "annotations.bed/fail": "oom"}, fall_back_to=ref
    )

    failed = await bench.apply_release(planned, wait={"going_back_s": 60.0}, timeout_s=120.0)

    assert failed.outcome.reason is Reason.ROLLOUT_FAILED
    cause, returned = failed.outcome.message.splitlines()
    assert "killed for its memory limit" in cause
    assert returned == f"it went back to the plan {digest[:19]}…, which was deployed before"
    settings = object_or_empty(bench.get("configmaps/web-settings").get("data"))
    assert settings["greeting"] == "hello"
    assert object_or_empty(bench.get("secrets/web-generated").get("data")) == password
    assert not bench.has("configmaps/web-extra")
    scanned = await bench.plan_release(scan=True)
    assert scanned.outputs["noop"] is True
