"""What the end of a job means for its install (state, parts, runs), and for the plan behind it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from exclave.appconfig.model.kinds.components import PlannedComponent
from exclave.appconfig.model.kinds.sandbox import Sandbox
from exclave.control.deps import Deps
from exclave.control.four_eyes import is_on
from exclave.control.install_state import parts
from exclave.control.install_state.reported_outputs import OutputsInvalid, read_count, read_table
from exclave.control.install_state.state import Document, write_state
from exclave.control.job_specs.component_types import get_type, read_definition
from exclave.control.progress.build_results import take_build
from exclave.domain.identity import OrgId
from exclave.domain.installs import PartState, decide_drift
from exclave.domain.jobs import JobKind, JobState, Reason
from exclave.flow.events import Then
from exclave.flow.plans.intents import (
    ApplyPart,
    PlanPart,
    ScanPart,
    StepIntent,
    WorkflowValues,
    read_intent,
    with_delay,
)
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

    then: Then = Then.ASK
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
    stored = _load_intent(tx, job)
    if stored is None:
        return Verdict()
    succeeded = ended.state is JobState.SUCCEEDED
    match stored.intent:
        case ScanPart(part):
            if succeeded:
                _take_scan(tx, ended, part, stored.values)
            return Verdict()
        case PlanPart() as plan if succeeded:
            return _take_plan(tx, ended, plan, stored.values)
        case ApplyPart() as apply if succeeded:
            _take_apply(tx, ended, apply, stored.values)
            return Verdict()
        case (PlanPart() | ApplyPart()) as intent:
            return _take_failure(tx, ended, intent, stored.values)
        case _:
            return Verdict()


def _take_failure(
    tx: Tx, ended: Ended, intent: PlanPart | ApplyPart, values: WorkflowValues
) -> Verdict:
    job, org = ended.job, OrgId(ended.job.org_id)
    if ended.reason == Reason.PLAN_STALE:
        return Verdict(again=_find_again(tx, job, intent, delay_s=0.0, most=parts.MOST_REPLANS))
    text = ended.message or ended.reason
    parts.note_failed(tx, org, job.queue_id, intent.part, job.workflow_id, text)
    if ended.state is JobState.FAILED and ended.reason in _PASSING:
        delay = min(_FIRST_DELAY_S * 2**job.step_attempt, _LONGEST_DELAY_S)
        definition = _find_definition(tx, org, values.config, intent.component)
        most = 0 if definition is None else definition.max_auto_retries
        return Verdict(again=_find_again(tx, job, intent, delay_s=delay, most=most))
    return Verdict()


def _take_scan(tx: Tx, ended: Ended, part: str, values: WorkflowValues) -> None:
    read_count(ended.outputs, "serial")  # refuses outputs that no plan has
    if values.is_drift_scan:
        drift = {"drift": decide_drift(noop=_is_noop(ended)), "drift_at": tx.now}
        install_parts.save_part(tx, OrgId(ended.job.org_id), ended.job.queue_id, part, drift)


def _take_plan(tx: Tx, ended: Ended, plan: PlanPart, values: WorkflowValues) -> Verdict:
    job, org = ended.job, OrgId(ended.job.org_id)
    noop = _is_noop(ended)
    read_count(ended.outputs, "serial")  # the apply compares it
    if noop and (plan.destroy or _skips_noops(tx, org, plan, values)):
        _take_apply(tx, ended, plan, values)
        return Verdict(Then.SKIP)
    parts.note_part(tx, org, job.queue_id, plan.part, PartState.PLANNED, workflow=job.workflow_id)
    if noop:
        return Verdict(Then.GO_ON)
    passed = plan.auto and job.spec.get("policies") and not is_on(tx, org)
    return Verdict(Then.APPROVE if passed else Then.ASK)


def _take_apply(tx: Tx, ended: Ended, intent: PlanPart | ApplyPart, values: WorkflowValues) -> None:
    job, org = ended.job, OrgId(ended.job.org_id)
    if intent.destroy:
        parts.note_gone(tx, org, job.queue_id, intent.part, job.workflow_id)
        return
    reported = read_table(ended.outputs, "outputs")
    value = _find_value(tx, org, values.config, intent.component)
    outputs = {} if value is None else get_type(intent.component, value).read_outputs(reported)
    parts.note_deployed(tx, org, job.queue_id, intent.part, values.config, outputs, job.workflow_id)


def _skips_noops(tx: Tx, org: OrgId, plan: PlanPart, values: WorkflowValues) -> bool:
    definition = _find_definition(tx, org, values.config, plan.component)
    return definition is not None and definition.skip_noops


def _is_noop(ended: Ended) -> bool:
    return bool(ended.outputs.get("noop"))


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


def _load_intent(tx: Tx, job: AnyRow) -> StepIntent | None:
    if job.workflow_id is None:
        return None
    specs = workflows.load_specs(tx, (job.org_id, job.workflow_id), [job.step])
    return read_intent(specs[job.step])


def _find_again(
    tx: Tx, job: AnyRow, intent: PlanPart | ApplyPart, *, delay_s: float, most: int
) -> int | None:
    """Find the plan to make again, and let it wait first; None when it was tried often enough."""
    if job.step_attempt >= most:
        return None
    key = (job.org_id, job.workflow_id)
    rows = workflows.list_steps(tx, *key)
    name = intent.plan if isinstance(intent, ApplyPart) else job.step_name
    plan = next(row for row in rows if row.name == name)
    workflows.set_spec(tx, key, plan.position, with_delay(plan.spec, delay_s))
    return int(plan.position)


def _find_definition(
    tx: Tx, org: OrgId, config: str, component: str
) -> PlannedComponent | Sandbox | None:
    """Find the definition of a component, or of the sandbox; None if the config is gone."""
    value = _find_value(tx, org, config, component)
    return None if value is None else read_definition(component, value)


def _find_value(tx: Tx, org: OrgId, config: str, component: str) -> Mapping[str, Any] | None:
    section = "component" if component else "sandbox"
    row = configs.find_part(tx, org, config, section, component)
    return None if row is None else dict(row.value)
