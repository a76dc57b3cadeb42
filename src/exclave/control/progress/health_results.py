"""Store whether components are healthy, and see to it that somebody looks."""

from exclave.base.json_values import JsonObject, object_or_empty, text_or_empty
from exclave.control.deps import Deps
from exclave.control.install_state.schedules import plan_check
from exclave.domain.identity import OrgId
from exclave.domain.installs import Health
from exclave.domain.intents import CheckPart
from exclave.domain.jobs import EndedJob
from exclave.storage import install_parts
from exclave.storage.engine.database import Tx

_LONGEST_REASON = 4000


def begin_health(tx: Tx, deps: Deps, job: EndedJob, part: str) -> None:
    """Store that a part is healthy whose apply has watched it, or have somebody look later."""
    wait = object_or_empty(job.spec.get("wait"))
    if wait.get("health") is None:
        return
    rules = object_or_empty(wait.get("health"))
    if rules.get("block") is True:
        _save(tx, job, part, Health.HEALTHY, "", job.workflow_id)
        return
    window = rules.get("window_s")
    plan_check(
        tx,
        deps,
        OrgId(job.org_id),
        job.queue_id,
        part,
        after_s=float(window) if isinstance(window, int | float) else 0.0,
        workflow=job.workflow_id,
    )


def note_degraded(tx: Tx, job: EndedJob, part: str, message: str) -> None:
    """Store why a part did not become ready, or did not stay so."""
    _save(tx, job, part, Health.DEGRADED, message, job.workflow_id)


def record_check(
    tx: Tx, job: EndedJob, intent: CheckPart, outputs: JsonObject | None, message: str
) -> None:
    """Store what a check found; one that failed has found nothing."""
    if outputs is None:
        why = f"it was not checked: {message}"
        _save(tx, job, intent.part, Health.UNKNOWN, why, intent.deployed_by)
        return
    report = object_or_empty(outputs.get("health"))
    is_healthy = report.get("state") == Health.HEALTHY
    health = Health.HEALTHY if is_healthy else Health.DEGRADED
    reason = text_or_empty(report.get("reason"))
    _save(tx, job, intent.part, health, reason, intent.deployed_by)


def _save(tx: Tx, job: EndedJob, part: str, health: Health, reason: str, workflow: str) -> None:
    install_parts.save_health(
        tx,
        OrgId(job.org_id),
        job.queue_id,
        part,
        health,
        reason[:_LONGEST_REASON],
        workflow=workflow,
    )
    tx.wake(f"install:{job.queue_id}")
