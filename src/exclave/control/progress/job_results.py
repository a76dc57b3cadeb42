"""Apply the result of a job to its install (state, parts, action runs) and to its plan."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from exclave.control.deps import Deps
from exclave.control.four_eyes import is_on
from exclave.control.install_state import parts
from exclave.control.install_state.reported_outputs import OutputsInvalid, read_count, read_table
from exclave.control.install_state.state import Document, write_state
from exclave.control.progress.build_results import apply_build_result
from exclave.domain.identity import OrgId
from exclave.domain.jobs import JobKind, JobState, Reason
from exclave.domain.tf_addresses import read_name
from exclave.flow.events import Then
from exclave.storage import configs, install_parts, workflows
from exclave.storage.engine.database import AnyRow, Tx

_PASSING = frozenset({
    Reason.NETWORK, Reason.PROVIDER_UNAVAILABLE, Reason.LOCK_HELD, Reason.QUOTA, Reason.TIMEOUT,
    Reason.ARTIFACT_UNAVAILABLE, Reason.EXIT_CODE,
})  # fmt: skip
"""Transient failures, which may be retried; a syntax error or a missing right is not one."""
_SECRET = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
"""The form of a secret's name, which becomes part of a placeholder."""
_FIRST_DELAY_S = 10.0
_LONGEST_DELAY_S = 300.0


@dataclass(frozen=True, slots=True)
class FinishedJob:
    """A job that has just reached its end."""

    job: AnyRow
    state: JobState
    reason: str
    outputs: Mapping[str, Any]
    message: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a result means for the workflow, beside the end of its step."""

    then: Then = Then.ASK
    again: int | None = None
    """Index of the plan step to retry at once."""


def apply_job_result(tx: Tx, deps: Deps, finished: FinishedJob) -> Verdict:
    """Apply the result of a job to its install; return what it means for the workflow."""
    match JobKind(finished.job.kind):
        case JobKind.BUILD:
            apply_build_result(
                tx, deps, finished.job, finished.state, finished.outputs, finished.message
            )
        case JobKind.TERRAFORM:
            return _record_terraform(tx, finished)
        case JobKind.ACTION:
            _record_action(tx, finished)
        case JobKind.SECRETS:
            _record_secrets(tx, finished)
        case JobKind.SCRIPT | JobKind.NOOP:
            pass
    return Verdict()


def _record_terraform(tx: Tx, finished: FinishedJob) -> Verdict:
    job = finished.job
    intent = _load_intent(tx, job)
    if intent is None:
        return Verdict()
    if finished.state is JobState.SUCCEEDED:
        record = _record_plan if intent["do"] == "plan" else _record_apply
        return record(tx, finished, intent)
    if intent.get("scan"):
        return Verdict()
    org = OrgId(job.org_id)
    if finished.reason == Reason.PLAN_STALE:
        return Verdict(again=_find_again(tx, job, intent, delay_s=0.0, most=parts.MOST_REPLANS))
    text = finished.message or finished.reason
    parts.note_failed(tx, org, job.queue_id, intent["part"], job.workflow_id, text)
    if finished.state is JobState.FAILED and finished.reason in _PASSING:
        delay = min(_FIRST_DELAY_S * 2**job.step_attempt, _LONGEST_DELAY_S)
        most = _read_setting(tx, org, intent, "max_auto_retries")
        return Verdict(again=_find_again(tx, job, intent, delay_s=delay, most=most))
    return Verdict()


def _record_plan(tx: Tx, finished: FinishedJob, intent: Mapping[str, Any]) -> Verdict:
    job, org = finished.job, OrgId(finished.job.org_id)
    noop = bool(finished.outputs.get("noop"))
    read_count(finished.outputs, "serial")  # the apply compares it
    if intent.get("scan"):
        if intent.get("kind") == "drift_scan":
            drift = {"drift": "none" if noop else "drifted", "drift_at": tx.now}
            install_parts.save_part(tx, org, job.queue_id, intent["part"], drift)
        return Verdict()
    if noop and (intent["destroy"] or _read_setting(tx, org, intent, "skip_noops")):
        _record_apply(tx, finished, intent)
        return Verdict(Then.SKIP)
    parts.note_part(tx, org, job.queue_id, intent["part"], parts.PLANNED, workflow=job.workflow_id)
    if noop:
        return Verdict(Then.GO_ON)
    passed = intent.get("auto") and job.spec.get("policies") and not is_on(tx, org)
    return Verdict(Then.APPROVE if passed else Then.ASK)


def _record_apply(tx: Tx, finished: FinishedJob, intent: Mapping[str, Any]) -> Verdict:
    job, org = finished.job, OrgId(finished.job.org_id)
    if intent["destroy"]:
        parts.note_gone(tx, org, job.queue_id, intent["part"], job.workflow_id)
    else:
        outputs_table = read_table(finished.outputs, "outputs")
        outputs = {read_name(name): value for name, value in outputs_table.items()}
        parts.note_deployed(tx, org, job.queue_id, intent, outputs, job.workflow_id)
    return Verdict()


def _record_action(tx: Tx, finished: FinishedJob) -> None:
    job, org = finished.job, OrgId(finished.job.org_id)
    state = "finished" if finished.state is JobState.SUCCEEDED else str(finished.state)
    run = install_parts.end_run(
        tx,
        org,
        job.workflow_id,
        job.step_name,
        {
            "state": finished.state,
            "outputs": dict(finished.outputs),
            "message": finished.message,
        },
    )
    if run is None:
        return

    def change(document: Document) -> None:
        known = document["actions"]["workflows"].get(run.action, {})
        outputs = dict(finished.outputs) if finished.outputs else known.get("outputs")
        document["actions"]["populated"] = True
        document["actions"]["workflows"][run.action] = {
            "status": state,
            "id": run.id,
            "outputs": outputs,
            "populated": True,
        }

    write_state(tx, org, job.queue_id, f"action {run.action}", change, job.workflow_id)


def _record_secrets(tx: Tx, finished: FinishedJob) -> None:
    if finished.state is not JobState.SUCCEEDED or finished.outputs.get("secrets") is None:
        return
    table = read_table(finished.outputs, "secrets")
    found = {name: _read_secret(name, facts) for name, facts in table.items()}

    def change(document: Document) -> None:
        document["secrets"] = found

    job = finished.job
    write_state(tx, OrgId(job.org_id), job.queue_id, "secrets", change, job.workflow_id)


def _read_secret(name: str, facts: object) -> dict[str, Any]:
    if not isinstance(facts, dict):
        raise OutputsInvalid("an entry of the output `secrets` is not a table")
    if not _SECRET.fullmatch(name):
        raise OutputsInvalid("an entry of the output `secrets` has a name that no secret has")
    known = {"exists": bool(facts.get("exists")), "length": read_count(facts, "length")}
    return {"name": name, "arn": f"((exclave:secret:{name}))", **known}


def _load_intent(tx: Tx, job: AnyRow) -> Mapping[str, Any] | None:
    if job.workflow_id is None:
        return None
    specs = workflows.load_specs(tx, (job.org_id, job.workflow_id), [job.step])
    intent: Mapping[str, Any] | None = specs[job.step].get("intent")
    return intent


def _find_again(
    tx: Tx, job: AnyRow, intent: Mapping[str, Any], *, delay_s: float, most: int
) -> int | None:
    """Set the delay of the plan to retry and return its index; None after `most` attempts."""
    if job.step_attempt >= most:
        return None
    key = (job.org_id, job.workflow_id)
    rows = workflows.list_steps(tx, *key)
    name = intent.get("plan", job.step_name)
    plan = next(row for row in rows if row.name == name)
    again = {**plan.spec, "intent": {**plan.spec["intent"], "delay_s": delay_s}}
    workflows.set_spec(tx, key, plan.position, again)
    return int(plan.position)


def _read_setting(tx: Tx, org: OrgId, intent: Mapping[str, Any], name: str) -> int:
    """Return a number or switch of the sandbox or component; 0 if it is not set."""
    component = str(intent.get("component", ""))
    section = "component" if component else "sandbox"
    row = configs.find_part(tx, org, intent["config"], section, component)
    return 0 if row is None else int(row.value.get(name, 0))
