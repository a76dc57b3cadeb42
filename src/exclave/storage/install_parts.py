"""Queries for the parts of an install (the sandbox, each component), and for runs of actions."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import insert, select, update

from exclave.base.json_values import JsonObject
from exclave.domain.actions import ActionRun, NewActionRun
from exclave.domain.identity import OrgId, QueueId
from exclave.domain.installs import Drift, Health, InstallPart, PartState
from exclave.domain.jobs import ExecutionId, JobState, Reason
from exclave.domain.workflows import StepKind, StepState, WorkflowId, WorkflowState
from exclave.storage.engine.database import Tx
from exclave.storage.tables.installs import action_runs, install_parts
from exclave.storage.tables.work import executions, steps, workflows

_SELECT_PART = select(
    install_parts.c.part.label("name"),
    install_parts.c.state,
    install_parts.c.drift,
    install_parts.c.config_id,
    install_parts.c.build_id,
    install_parts.c.workflow_id,
    install_parts.c.message,
    install_parts.c.changed_at,
    install_parts.c.drift_at,
    install_parts.c.health,
    install_parts.c.health_reason,
    install_parts.c.health_at,
)
_SELECT_RUN = select(
    action_runs.c.id,
    action_runs.c.action,
    action_runs.c.trigger,
    action_runs.c.workflow_id,
    action_runs.c.step,
    action_runs.c.state,
    action_runs.c.outputs,
    action_runs.c.message,
    action_runs.c.started_at,
    action_runs.c.finished_at,
)


def list_parts(tx: Tx, org: OrgId, install: str) -> Sequence[InstallPart]:
    """List the parts that were ever planned, by name."""
    mine = (install_parts.c.org_id == org, install_parts.c.install_id == install)
    return tx.all(_SELECT_PART.where(*mine).order_by(install_parts.c.part), InstallPart)


def save_state(
    tx: Tx,
    org: OrgId,
    install: str,
    part: str,
    state: PartState,
    *,
    workflow: str,
    message: str = "",
) -> None:
    """Store how far a workflow brought a part; what is deployed of it stays as it is."""
    _save(tx, org, install, part, state=state, workflow_id=workflow, message=message)


def save_deployment(
    tx: Tx,
    org: OrgId,
    install: str,
    part: str,
    state: PartState,
    *,
    workflow: str,
    config: str | None,
    build: str | None,
) -> None:
    """Store what is deployed of a part now; what was found out before is no longer known."""
    deployed = {"config_id": config, "build_id": build, "drift": Drift.UNKNOWN}
    deployed |= {"health": Health.UNKNOWN, "health_reason": "", "health_at": None}
    _save(tx, org, install, part, state=state, workflow_id=workflow, message="", **deployed)


def save_drift(tx: Tx, org: OrgId, install: str, part: str, drift: Drift) -> None:
    """Store what a scan found out about a part."""
    _save(tx, org, install, part, drift=drift, drift_at=tx.now)


def save_drift_state(tx: Tx, org: OrgId, install: str, part: str, drift: Drift) -> None:
    """Store what people made of the last scan; a part that was deployed since stays unknown."""
    scanned = (*_is(org, install, part), install_parts.c.drift != Drift.UNKNOWN)
    tx.run(update(install_parts).where(*scanned).values(drift=drift))


def save_health(
    tx: Tx, org: OrgId, install: str, part: str, health: Health, reason: str, *, workflow: str
) -> None:
    """Store whether a part is healthy, unless another workflow has changed it since."""
    same = (*_is(org, install, part), install_parts.c.workflow_id == workflow)
    row = {"health": health, "health_reason": reason, "health_at": tx.now}
    tx.run(update(install_parts).where(*same).values(**row))


def _save(tx: Tx, org: OrgId, install: str, part: str, **values: Any) -> None:
    row = {"changed_at": tx.now, **values}
    done = tx.run(update(install_parts).where(*_is(org, install, part)).values(**row))
    if done.rowcount == 0:
        known = {"org_id": org, "install_id": install, "part": part, "state": PartState.ABSENT}
        tx.run(insert(install_parts).values(**{**known, **row}))


def add_run(tx: Tx, org: OrgId, run: NewActionRun) -> None:
    """Record that an action begins."""
    tx.run(
        insert(action_runs).values(
            org_id=org,
            id=run.id,
            install_id=run.install_id,
            action=run.action,
            trigger=run.trigger,
            workflow_id=run.workflow_id,
            step=run.step,
            state=JobState.RUNNING,
            outputs={},
            started_at=tx.now,
        )
    )


def end_run(
    tx: Tx,
    org: OrgId,
    workflow: str,
    step: str,
    *,
    state: JobState,
    outputs: JsonObject,
    message: str,
) -> ActionRun | None:
    """Record how the newest run of a step ended; return it as it was before."""
    mine = (
        action_runs.c.org_id == org,
        action_runs.c.workflow_id == workflow,
        action_runs.c.step == step,
    )
    newest = tx.first(
        _SELECT_RUN.where(*mine).order_by(action_runs.c.id.desc()).limit(1), ActionRun
    )
    if newest is not None:
        same = (action_runs.c.org_id == org, action_runs.c.id == newest.id)
        ended = {"state": state, "outputs": dict(outputs), "message": message}
        tx.run(update(action_runs).where(*same).values(finished_at=tx.now, **ended))
    return newest


def list_runs(
    tx: Tx, org: OrgId, install: str, *, action: str | None, before: str, limit: int
) -> Sequence[ActionRun]:
    """List runs of actions, newest first."""
    query = _SELECT_RUN.where(action_runs.c.org_id == org, action_runs.c.install_id == install)
    if action is not None:
        query = query.where(action_runs.c.action == action)
    if before:
        query = query.where(action_runs.c.id < before)
    return tx.all(query.order_by(action_runs.c.id.desc()).limit(limit), ActionRun)


def find_succeeded_execution(tx: Tx, org: OrgId, job: str) -> ExecutionId | None:
    """Find the execution that handed in a job's good result."""
    mine = (executions.c.org_id == org, executions.c.job_id == job)
    good = (executions.c.reason == Reason.COMPLETED, executions.c.result_digest.is_not(None))
    row = tx.first(
        select(executions.c.id).where(*mine, *good).order_by(executions.c.id.desc()).limit(1)
    )
    return None if row is None else ExecutionId(row.id)


class OpenWait(NamedTuple):
    """A step of a running workflow that waits for something outside."""

    workflow_id: WorkflowId
    position: int
    attempt: int
    queue_id: QueueId
    spec: JsonObject


def list_waiting(
    tx: Tx, org: OrgId, step: str, queues: Sequence[str] | None = None
) -> Sequence[OpenWait]:
    """List the open waits of this name in running workflows."""
    query = (
        select(
            steps.c.workflow_id,
            steps.c.position,
            steps.c.attempt,
            workflows.c.queue_id,
            steps.c.spec,
        )
        .join(workflows, (workflows.c.org_id == org) & (workflows.c.id == steps.c.workflow_id))
        .where(
            steps.c.org_id == org,
            workflows.c.state == WorkflowState.RUNNING,
            steps.c.kind == StepKind.WAIT,
            steps.c.name == step,
            steps.c.state == StepState.ACTIVE,
        )
    )
    if queues is not None:
        query = query.where(workflows.c.queue_id.in_(queues))
    return tx.all(query, OpenWait)


def _is(org: OrgId, install: str, part: str) -> tuple[Any, ...]:
    return (
        install_parts.c.org_id == org,
        install_parts.c.install_id == install,
        install_parts.c.part == part,
    )
