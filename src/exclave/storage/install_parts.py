"""Queries for the parts of an install (the sandbox, each component), and for runs of actions."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import insert, select, update

from exclave.domain.identity import OrgId
from exclave.domain.installs import PartState
from exclave.storage.engine.database import AnyRow, Tx
from exclave.storage.tables.core import executions, steps, workflows
from exclave.storage.tables.installs import action_runs, install_parts


def find_part(tx: Tx, org: OrgId, install: str, part: str) -> AnyRow | None:
    """Find a part by its name: `sandbox` or `component:<name>`."""
    return tx.first(select(install_parts).where(*_is(org, install, part)))


def list_parts(tx: Tx, org: OrgId, install: str) -> Sequence[AnyRow]:
    """List the parts that were ever planned, by name."""
    mine = (install_parts.c.org_id == org, install_parts.c.install_id == install)
    return tx.all(select(install_parts).where(*mine).order_by(install_parts.c.part))


def save_part(tx: Tx, org: OrgId, install: str, part: str, values: Mapping[str, Any]) -> None:
    """Write what became of a part."""
    row = {"changed_at": tx.now, **values}
    done = tx.run(update(install_parts).where(*_is(org, install, part)).values(**row))
    if done.rowcount == 0:
        known = {"org_id": org, "install_id": install, "part": part, "state": PartState.ABSENT}
        tx.run(insert(install_parts).values(**{**known, **row}))


def add_run(tx: Tx, row: Mapping[str, Any]) -> None:
    """Record that an action begins."""
    tx.run(insert(action_runs).values(started_at=tx.now, outputs={}, **row))


def end_run(
    tx: Tx, org: OrgId, workflow: str, step: str, values: Mapping[str, Any]
) -> AnyRow | None:
    """Record how the newest run of a step ended."""
    mine = (
        action_runs.c.org_id == org,
        action_runs.c.workflow_id == workflow,
        action_runs.c.step == step,
    )
    newest = tx.first(select(action_runs).where(*mine).order_by(action_runs.c.id.desc()).limit(1))
    if newest is not None:
        same = (action_runs.c.org_id == org, action_runs.c.id == newest.id)
        tx.run(update(action_runs).where(*same).values(finished_at=tx.now, **values))
    return newest


def list_runs(
    tx: Tx, org: OrgId, install: str, *, action: str | None, before: str, limit: int
) -> Sequence[AnyRow]:
    """List runs of actions, newest first."""
    query = select(action_runs).where(
        action_runs.c.org_id == org, action_runs.c.install_id == install
    )
    if action is not None:
        query = query.where(action_runs.c.action == action)
    if before:
        query = query.where(action_runs.c.id < before)
    return tx.all(query.order_by(action_runs.c.id.desc()).limit(limit))


def find_succeeded_execution(tx: Tx, org: OrgId, job: str) -> str | None:
    """Find the execution that handed in a job's good result."""
    mine = (executions.c.org_id == org, executions.c.job_id == job)
    good = (executions.c.reason == "completed", executions.c.result_digest.is_not(None))
    row = tx.first(
        select(executions.c.id).where(*mine, *good).order_by(executions.c.id.desc()).limit(1)
    )
    return None if row is None else str(row.id)


def list_waiting(
    tx: Tx, org: OrgId, step: str, queues: Sequence[str] | None = None
) -> Sequence[AnyRow]:
    """List running workflows whose wait of this name is open: workflow, position, attempt."""
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
            workflows.c.state == "running",
            steps.c.kind == "wait",
            steps.c.name == step,
            steps.c.state == "active",
        )
    )
    return tx.all(query if queues is None else query.where(workflows.c.queue_id.in_(queues)))


def _is(org: OrgId, install: str, part: str) -> tuple[Any, ...]:
    return (
        install_parts.c.org_id == org,
        install_parts.c.install_id == install,
        install_parts.c.part == part,
    )
