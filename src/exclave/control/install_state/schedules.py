"""Store the schedules that an install's config declares."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from exclave.appconfig.model.kinds.components import Component, PlannedComponent
from exclave.appconfig.model.kinds.sandbox import Sandbox
from exclave.base.errors import InvalidInput
from exclave.control.definitions import list_definitions
from exclave.control.deps import Deps
from exclave.control.install_state.cron import find_next
from exclave.control.limits.quotas import check_count
from exclave.domain.configs import Config
from exclave.domain.identity import InstallId, OrgId
from exclave.domain.installs import name_part
from exclave.domain.quotas import Counted, QuotaExceeded
from exclave.domain.schedules import NEVER, Schedule, ScheduleKind
from exclave.storage import schedules
from exclave.storage.engine.database import Tx


def refresh_schedules(
    tx: Tx, deps: Deps, org: OrgId, install: str, config: Config, *, refuse: bool
) -> None:
    """Make the schedules of an install those of its config; what stays keeps its next tick.

    Those beyond the quota of the org are a problem where somebody can be told (`refuse`). At the
    end of a workflow nobody can: the work is done. Then they are never due, and a note says why.
    """
    wanted = dict(_list_wanted(tx, org, config))
    for schedule in schedules.list_schedules(tx, org, install):
        if schedule.kind is ScheduleKind.HEALTH:
            continue
        cron = wanted.pop((schedule.kind, schedule.subject), None)
        if cron is None:
            schedules.drop_schedule(tx, org, schedule.id)
        elif cron != schedule.cron:
            next_at, note = find_tick(cron, tx.now)
            schedules.set_cron(tx, org, schedule.id, cron=cron, next_at=next_at, note=note)
    full = _find_quota(tx, deps, org, len(wanted)) if wanted else None
    if full is not None and refuse:
        raise full
    for (kind, subject), cron in wanted.items():
        next_at, note = find_tick(cron, tx.now) if full is None else (NEVER, full.message)
        schedules.add_schedule(
            tx,
            Schedule(
                org=org,
                id=deps.ids.new("sch"),
                install_id=InstallId(install),
                kind=kind,
                subject=subject,
                cron=cron,
                next_at=next_at,
                note=note,
            ),
        )
    tx.wake("schedules")


def plan_check(
    tx: Tx, deps: Deps, org: OrgId, install: str, part: str, *, after_s: float, workflow: str
) -> None:
    """Schedule a look at a part that a workflow has just deployed; it replaces an earlier one."""
    schedules.drop_check(tx, org, install, part)
    schedules.add_schedule(
        tx,
        Schedule(
            org=org,
            id=deps.ids.new("sch"),
            install_id=InstallId(install),
            kind=ScheduleKind.HEALTH,
            subject=part,
            cron="",
            next_at=tx.now + timedelta(seconds=after_s),
            detail={"deployed_by": workflow},
        ),
    )
    tx.wake("schedules")


def _find_quota(tx: Tx, deps: Deps, org: OrgId, more: int) -> QuotaExceeded | None:
    try:
        check_count(tx, deps, org, Counted.SCHEDULES, more)
    except QuotaExceeded as problem:
        return problem
    return None


def find_tick(cron: str, after: datetime) -> tuple[datetime, str]:
    """Find when a schedule is due next; one that cannot be followed never is, and a note says why.

    Sync lets some schedules pass that we cannot follow, and dates that never come. An install must
    not fail because of them.
    """
    try:
        return find_next(cron, after), ""
    except InvalidInput as problem:
        return NEVER, problem.message


def _list_wanted(
    tx: Tx, org: OrgId, config: Config
) -> Iterator[tuple[tuple[ScheduleKind, str], str]]:
    """Yield kind, subject and cron of all that the config has a schedule for."""
    for action in config.outline["actions"]:
        for trigger in action["triggers"]:
            if trigger["type"] == "cron" and trigger.get("cron"):
                yield (ScheduleKind.ACTION, action["name"]), trigger["cron"]
    parts: dict[str, Component | Sandbox] = {
        **list_definitions(tx, org, config.id, Sandbox),
        **list_definitions(tx, org, config.id, Component),
    }
    for component, definition in parts.items():
        if isinstance(definition, PlannedComponent | Sandbox):
            cron = definition.drift_schedule
            if cron and "{{" not in cron:
                yield (ScheduleKind.DRIFT, name_part(component)), cron
