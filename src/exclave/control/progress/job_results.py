"""Apply the result of a job to its install (state, parts, action runs) and to its plan."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from exclave.appconfig.model.kinds.components import Component, PlannedComponent
from exclave.appconfig.model.kinds.sandbox import Sandbox
from exclave.base.json_values import JsonObject
from exclave.control.definitions import find_definition
from exclave.control.deps import Deps
from exclave.control.four_eyes import is_on
from exclave.control.install_state import parts
from exclave.control.install_state.reported_outputs import OutputsInvalid, read_count, read_table
from exclave.control.install_state.state import write_state
from exclave.control.job_specs.component_types import find_results
from exclave.control.job_specs.part_results import PartResults, read_report
from exclave.control.progress.build_results import FinishedBuild, apply_build_result
from exclave.control.progress.drift_results import record_scan
from exclave.control.progress.health_results import begin_health, note_degraded, record_check
from exclave.domain.identity import OrgId
from exclave.domain.install_state import SecretEntry, StateDocument
from exclave.domain.installs import PartState
from exclave.domain.intents import (
    ApplyPart,
    CheckPart,
    PlanPart,
    ScanPart,
    StepIntent,
    SyncPart,
    WorkflowValues,
    read_intent,
    with_delay,
)
from exclave.domain.jobs import IDEMPOTENT, EndedJob, JobKind, JobState, Reason
from exclave.domain.workflow_records import StepRecord
from exclave.flow.events import GateDecision
from exclave.storage import install_parts, steps
from exclave.storage.engine.database import Tx

_PASSING = frozenset({
    Reason.NETWORK, Reason.PROVIDER_UNAVAILABLE, Reason.LOCK_HELD, Reason.QUOTA, Reason.TIMEOUT,
    Reason.ARTIFACT_UNAVAILABLE, Reason.EXIT_CODE, Reason.CLUSTER_UNREACHABLE,
    Reason.RELEASE_BUSY, Reason.IMAGE_UNAVAILABLE,
})  # fmt: skip
"""Transient failures, which may be retried; a syntax error or a missing right is not one."""
_MOST_PLACES = 1000
_LONGEST_PLACE = 253
_SECRET = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
"""The form of a secret's name, which becomes part of a placeholder."""
_FIRST_DELAY_S = 10.0
_LONGEST_DELAY_S = 300.0


@dataclass(frozen=True, slots=True)
class FinishedJob:
    """A job that has just reached its end."""

    job: EndedJob
    state: JobState
    reason: Reason
    outputs: JsonObject
    message: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a result means for the workflow, beside the end of its step."""

    then: GateDecision = GateDecision.ASK
    again: int | None = None
    """Index of the plan step to retry at once."""


def apply_job_result(tx: Tx, deps: Deps, finished: FinishedJob) -> Verdict:
    """Apply the result of a job to its install; return what it means for the workflow."""
    kind = finished.job.kind
    results = find_results(kind)
    if results is not None:
        return _record_part(tx, deps, finished, results)
    RECORDERS[kind](tx, deps, finished)
    return Verdict()


def _record_part(tx: Tx, deps: Deps, finished: FinishedJob, results: PartResults) -> Verdict:
    job = finished.job
    stored = _load_intent(tx, job)
    if stored is None:
        return Verdict()
    succeeded = finished.state is JobState.SUCCEEDED
    match stored.intent:
        case ScanPart(part):
            if succeeded:
                _record_scan(tx, deps, finished, results, part, stored.values)
            return Verdict()
        case PlanPart() as plan if succeeded:
            return _record_plan(tx, finished, results, plan, stored.values)
        case ApplyPart() as apply if succeeded:
            _record_apply(tx, finished, results, apply, stored.values)
            if not apply.destroy:
                begin_health(tx, deps, finished.job, apply.part)
            return Verdict()
        case SyncPart() as sync if succeeded:
            _record_apply(tx, finished, results, sync, stored.values)
            return Verdict()
        case SyncPart(part):
            _note_failed(tx, finished, part)
            return Verdict()
        case (PlanPart() | ApplyPart()) as intent:
            return _record_failure(tx, finished, intent, stored.values)
        case _:
            return Verdict()


def _record_failure(
    tx: Tx, finished: FinishedJob, intent: PlanPart | ApplyPart, values: WorkflowValues
) -> Verdict:
    job, org = finished.job, OrgId(finished.job.org_id)
    if finished.reason == Reason.PLAN_STALE:
        return Verdict(again=_find_again(tx, job, intent, delay_s=0.0, most=parts.MOST_REPLANS))
    _note_failed(tx, finished, intent.part)
    if finished.reason == Reason.ROLLOUT_FAILED:
        note_degraded(tx, job, intent.part, finished.message)
    if finished.state is JobState.FAILED and finished.reason in _PASSING:
        delay = min(_FIRST_DELAY_S * 2**job.step_attempt, _LONGEST_DELAY_S)
        definition = _find_definition(tx, org, values.config, intent.component)
        most = 0 if definition is None else definition.max_auto_retries
        return Verdict(again=_find_again(tx, job, intent, delay_s=delay, most=most))
    return Verdict()


def _note_failed(tx: Tx, finished: FinishedJob, part: str) -> None:
    job, text = finished.job, finished.message or finished.reason
    parts.note_failed(tx, OrgId(job.org_id), job.queue_id, part, job.workflow_id, text)


def _record_scan(
    tx: Tx,
    deps: Deps,
    finished: FinishedJob,
    results: PartResults,
    part: str,
    values: WorkflowValues,
) -> None:
    noop = results.read_plan(finished.outputs).noop
    if values.is_drift_scan:
        report = read_report(finished.outputs)
        record_scan(tx, deps, finished.job, part, noop=noop, report=report)


def _record_plan(
    tx: Tx, finished: FinishedJob, results: PartResults, plan: PlanPart, values: WorkflowValues
) -> Verdict:
    job, org = finished.job, OrgId(finished.job.org_id)
    noop = results.read_plan(finished.outputs).noop
    if noop and (plan.destroy or _skips_noops(tx, org, plan, values)):
        _record_apply(tx, finished, results, plan, values)
        return Verdict(GateDecision.SKIP)
    parts.note_part(tx, org, job.queue_id, plan.part, PartState.PLANNED, workflow=job.workflow_id)
    if noop:
        return Verdict(GateDecision.GO_ON)
    passed = plan.auto and job.spec.get("policies") and not is_on(tx, org)
    return Verdict(GateDecision.APPROVE if passed else GateDecision.ASK)


def _record_apply(
    tx: Tx,
    finished: FinishedJob,
    results: PartResults,
    intent: PlanPart | ApplyPart | SyncPart,
    values: WorkflowValues,
) -> None:
    job, org = finished.job, OrgId(finished.job.org_id)
    if intent.destroy:
        parts.note_gone(tx, org, job.queue_id, intent.part, job.workflow_id)
        return
    outputs = results.read_outputs(finished.outputs)
    config = _find_config(tx, job, intent, values)
    parts.note_deployed(tx, org, job.queue_id, intent.part, config, outputs, job.workflow_id)


def _find_config(
    tx: Tx, job: EndedJob, intent: PlanPart | ApplyPart | SyncPart, values: WorkflowValues
) -> str:
    """Return the config that is deployed now; that of an earlier plan after a rollback."""
    if isinstance(intent, ApplyPart) and job.kind in IDEMPOTENT:
        stored = read_intent(_find_plan_step(tx, job, intent.plan).spec)
        planned = None if stored is None else stored.intent
    else:
        planned = intent
    if isinstance(planned, PlanPart) and planned.rollback_to is not None:
        return planned.rollback_to.config
    return values.config


def _skips_noops(tx: Tx, org: OrgId, plan: PlanPart, values: WorkflowValues) -> bool:
    definition = _find_definition(tx, org, values.config, plan.component)
    return definition is not None and definition.skip_noops


def _record_build(tx: Tx, deps: Deps, finished: FinishedJob) -> None:
    job = finished.job
    build = FinishedBuild(
        org=job.org_id,
        build=str(job.spec["build_id"]),
        job=job.id,
        state=finished.state,
        outputs=finished.outputs,
        message=finished.message,
    )
    apply_build_result(tx, deps, build)


def _record_action(tx: Tx, _: Deps, finished: FinishedJob) -> None:
    job, org = finished.job, OrgId(finished.job.org_id)
    state = "finished" if finished.state is JobState.SUCCEEDED else str(finished.state)
    run = install_parts.end_run(
        tx,
        org,
        job.workflow_id,
        job.step_name,
        state=finished.state,
        outputs=finished.outputs,
        message=finished.message,
    )
    if run is None:
        return

    def change(document: StateDocument) -> None:
        known = document["actions"]["workflows"].get(run.action)
        outputs = dict(finished.outputs) or (known["outputs"] if known else None)
        document["actions"]["populated"] = True
        document["actions"]["workflows"][run.action] = {
            "status": state,
            "id": run.id,
            "outputs": outputs,
            "populated": True,
        }

    write_state(tx, org, job.queue_id, f"action {run.action}", change, job.workflow_id)


def _record_secrets(tx: Tx, _: Deps, finished: FinishedJob) -> None:
    if finished.state is not JobState.SUCCEEDED or finished.outputs.get("secrets") is None:
        return
    table = read_table(finished.outputs, "secrets")
    secrets = {name: _read_secret(name, facts) for name, facts in table.items()}

    def change(document: StateDocument) -> None:
        document["secrets"] = secrets

    job = finished.job
    write_state(tx, OrgId(job.org_id), job.queue_id, "secrets", change, job.workflow_id)


def _read_secret(name: str, facts: object) -> SecretEntry:
    if not isinstance(facts, dict):
        raise OutputsInvalid("an entry of the output `secrets` is not a table")
    if not _SECRET.fullmatch(name):
        raise OutputsInvalid("an entry of the output `secrets` has a name that no secret has")
    entry: SecretEntry = {
        "name": name,
        "arn": f"((exclave:secret:{name}))",
        "exists": bool(facts.get("exists")),
        "length": read_count(facts, "length"),
    }
    places = _read_places(facts.get("kubernetes_secrets"))
    return {**entry, "kubernetes_secrets": places} if places else entry


def _read_places(value: object) -> list[dict[str, str]]:
    """Return where a secret is in the cluster; older runners do not say."""
    entries = value if isinstance(value, list) else []
    tables = [entry for entry in entries[:_MOST_PLACES] if isinstance(entry, dict)]
    return [
        {key: str(table.get(key, ""))[:_LONGEST_PLACE] for key in ("namespace", "name", "key")}
        for table in tables
    ]


def _record_health(tx: Tx, _: Deps, finished: FinishedJob) -> None:
    stored = _load_intent(tx, finished.job)
    if stored is not None and isinstance(stored.intent, CheckPart):
        outputs = finished.outputs if finished.state is JobState.SUCCEEDED else None
        record_check(tx, finished.job, stored.intent, outputs, finished.message or finished.reason)


def _record_nothing(_tx: Tx, _deps: Deps, _finished: FinishedJob) -> None:
    """Scripts and empty jobs change nothing beside their step."""


RECORDERS: Mapping[JobKind, Callable[[Tx, Deps, FinishedJob], None]] = {
    JobKind.ACTION: _record_action,
    JobKind.BUILD: _record_build,
    JobKind.HEALTH: _record_health,
    JobKind.NOOP: _record_nothing,
    JobKind.SCRIPT: _record_nothing,
    JobKind.SECRETS: _record_secrets,
}
"""Apply the results of jobs that deploy no part; those that do are in the component types."""


def _load_intent(tx: Tx, job: EndedJob) -> StepIntent | None:
    specs = steps.load_specs(tx, (job.org_id, job.workflow_id), [job.step])
    return read_intent(specs[job.step])


def _find_again(
    tx: Tx, job: EndedJob, intent: PlanPart | ApplyPart, *, delay_s: float, most: int
) -> int | None:
    """Set the delay of the plan to retry and return its index; None after `most` attempts."""
    if job.step_attempt >= most:
        return None
    key = (job.org_id, job.workflow_id)
    name = intent.plan if isinstance(intent, ApplyPart) else job.step_name
    plan = _find_plan_step(tx, job, name)
    steps.set_spec(tx, key, plan.position, with_delay(plan.spec, delay_s))
    return plan.position


def _find_plan_step(tx: Tx, job: EndedJob, name: str) -> StepRecord:
    listed = steps.list_steps(tx, job.org_id, job.workflow_id)
    return next(step for step in listed if step.name == name)


def _find_definition(
    tx: Tx, org: OrgId, config: str, component: str
) -> PlannedComponent | Sandbox | None:
    """Find the definition of a component, or of the sandbox; None if the config is gone."""
    if not component:
        return find_definition(tx, org, config, Sandbox)
    definition = find_definition(tx, org, config, Component, component)
    return definition if isinstance(definition, PlannedComponent) else None
