"""How many rows an org has of the kinds that are counted when one is added."""

from typing import Any

from sqlalchemy import Select, func, select

from exclave.domain.identity import OrgId
from exclave.domain.quotas import Counted
from exclave.domain.workflows import WorkflowState
from exclave.storage.engine.database import Tx
from exclave.storage.tables.identity import api_tokens
from exclave.storage.tables.installs import installs, schedules
from exclave.storage.tables.runners import enrolments
from exclave.storage.tables.work import workflows


def count_rows(tx: Tx, org: OrgId, kind: Counted, most: int) -> int:
    """Count the rows of a kind that still mean something; not beyond `most`."""
    some = _choose(tx, org, kind).limit(most).subquery()
    row = tx.first(select(func.count().label("rows")).select_from(some))
    return 0 if row is None else int(row.rows)


def _choose(tx: Tx, org: OrgId, kind: Counted) -> Select[Any]:
    match kind:
        case Counted.INSTALLS:
            return select(installs.c.id).where(
                installs.c.org_id == org, installs.c.deleted_at.is_(None)
            )
        case Counted.TOKENS:
            at = api_tokens.c
            alive = (at.revoked_at.is_(None), at.expires_at > tx.now)
            return select(at.id).where(at.org_id == org, *alive)
        case Counted.ENROLMENTS:
            held = enrolments.c
            unused = (held.used_at.is_(None), held.expires_at > tx.now)
            return select(held.id).where(held.org_id == org, *unused)
        case Counted.SCHEDULES:
            return select(schedules.c.id).where(schedules.c.org_id == org)
        case Counted.WORKFLOWS:
            running = workflows.c.state == WorkflowState.RUNNING
            return select(workflows.c.id).where(workflows.c.org_id == org, running)
