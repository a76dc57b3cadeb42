"""What the end of a job means for its install (state, parts, runs), and for the plan behind it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from exclave.control.deps import Deps
from exclave.control.four_eyes import is_on
from exclave.control.install_state import parts
from exclave.control.install_state.reported_outputs import OutputsInvalid, read_count, read_table
from exclave.control.install_state.state import Document, write_state
from exclave.control.progress.build_results import take_build
from exclave.domain.identity import OrgId
from exclave.domain.jobs import JobKind, JobState, Reason
from exclave.domain.tf_addresses import read_name
from exclave.flow.events import GateDecision
from exclave.storage import configs, install_parts, workflows
from exclave.storage.engine.database import AnyRow, Tx

_PASSING = frozenset({
    Reason.NETWORK, Reason.PROVIDER_UNAVAILABLE, Reason.LOCK_HELD, Reason.QUOTA, Reason.TIMEOUT,
    Reason.ARTIFACT_UNAVAILABLE, Reason.EXIT_CODE,
})  # fmt: skip
"""Failures that may be over the next time; a syntax error or a missing right will not."""
_SECRET = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
"""What the name of a secret looks like; it becomes part of a placeholder."""
_FIRST_DELAY_S = 10.0
_LONGEST_DELAY_S = 300.0


@dataclass(frozen=True, slots=True)
class Ended:
    """A job that has just reached its end."""

    job: AnyRow
    state: JobState
    reason: str
    outputs: Mapping[str, Any]
    message: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What follows for the workflow beside the end of the step."""

    then: GateDecision = GateDecision.ASK
    again: int | None = None
    """The step to do again at once: the plan."""


def take_end(tx: Tx, deps: Deps, ended: Ended) -> Verdict:
    """Take what a job brought into its install."""
    match JobKind(ended.job.kind):
        case JobKind.BUILD:
            take_build(tx, deps, ended.job, ended.state, ended.outputs, ended.message)
        case JobKind.TERRAFORM:
            return _take_terraform(tx, ended)
        case JobKind.ACTION:
            _take_action(tx, ended)
        case JobKind.SECRETS:
            _take_secrets(tx, ended)
        case JobKind.SCRIPT | JobKind.NOOP:
            pass
    return Verdict()


def _take_terraform(tx: Tx, ended: Ended) -> Verdict:
    job = ended.job
    intent = _load_intent(tx, job)
    if intent is None:
        return Verdict()
    if ended.state is JobState.SUCCEEDED:
        take = _take_plan if intent["do"] == "plan" else _take_apply
        return take(tx, ended, intent)
    if intent.get("scan"):
        return Verdict()
    org = OrgId(job.org_id)
    if ended.reason == Reason.PLAN_STALE:
        return Verdict(again=_find_again(tx, job, intent, delay_s=0.0, most=parts.MOST_REPLANS))
    text = ended.message or ended.reason
    parts.note_failed(tx, org, job.queue_id, intent["part"], job.workflow_id, text)
    if ended.state is JobState.FAILED and ended.reason in _PASSING:
        delay = min(_FIRST_DELAY_S * 2**job.step_attempt, _LONGEST_DELAY_S)
        most = _read_setting(tx, org, intent, "max_auto_retries")
        return Verdict(again=_find_again(tx, job, intent, delay_s=delay, most=most))
    return Verdict()


def _take_plan(tx: Tx, ended: Ended, intent: Mapping[str, Any]) -> Verdict:
    job, org = ended.job, OrgId(ended.job.org_id)
    noop = bool(ended.outputs.get("noop"))
    read_count(ended.outputs, "serial")  # the apply compares it
    if intent.get("scan"):
        if intent.get("kind") == "drift_scan":
            drift = {"drift": "none" if noop else "drifted", "drift_at": tx.now}
            install_parts.save_part(tx, org, job.queue_id, intent["part"], drift)
        return Verdict()
    if noop and (intent["destroy"] or _read_setting(tx, org, intent, "skip_noops")):
        _take_apply(tx, ended, intent)
        return Verdict(GateDecision.SKIP)
    parts.note_part(tx, org, job.queue_id, intent["part"], parts.PLANNED, workflow=job.workflow_id)
    if noop:
        return Verdict(GateDecision.GO_ON)
    passed = intent.get("auto") and job.spec.get("policies") and not is_on(tx, org)
    return Verdict(GateDecision.APPROVE if passed else GateDecision.ASK)


def _take_apply(tx: Tx, ended: Ended, intent: Mapping[str, Any]) -> Verdict:
    job, org = ended.job, OrgId(ended.job.org_id)
    if intent["destroy"]:
        parts.note_gone(tx, org, job.queue_id, intent["part"], job.workflow_id)
    else:
        told = read_table(ended.outputs, "outputs")
        outputs = {read_name(name): value for name, value in told.items()}
        parts.note_deployed(tx, org, job.queue_id, intent, outputs, job.workflow_id)
    return Verdict()


def _take_action(tx: Tx, ended: Ended) -> None:
    job, org = ended.job, OrgId(ended.job.org_id)
    state = "finished" if ended.state is JobState.SUCCEEDED else str(ended.state)
    run = install_parts.end_run(
        tx,
        org,
        job.workflow_id,
        job.step_name,
        {
            "state": ended.state,
            "outputs": dict(ended.outputs),
            "message": ended.message,
        },
    )
    if run is None:
        return

    def change(document: Document) -> None:
        known = document["actions"]["workflows"].get(run.action, {})
        outputs = dict(ended.outputs) if ended.outputs else known.get("outputs")
        document["actions"]["populated"] = True
        document["actions"]["workflows"][run.action] = {
            "status": state,
            "id": run.id,
            "outputs": outputs,
            "populated": True,
        }

    write_state(tx, org, job.queue_id, f"action {run.action}", change, job.workflow_id)


def _take_secrets(tx: Tx, ended: Ended) -> None:
    if ended.state is not JobState.SUCCEEDED or ended.outputs.get("secrets") is None:
        return
    table = read_table(ended.outputs, "secrets")
    found = {name: _read_secret(name, facts) for name, facts in table.items()}

    def change(document: Document) -> None:
        document["secrets"] = found

    job = ended.job
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
    """Find the plan to make again, and let it wait first; None when it was tried often enough."""
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
    """Read a number or a switch of the sandbox or component; none is 0."""
    component = str(intent.get("component", ""))
    section = "component" if component else "sandbox"
    row = configs.find_part(tx, org, intent["config"], section, component)
    return 0 if row is None else int(row.value.get(name, 0))
