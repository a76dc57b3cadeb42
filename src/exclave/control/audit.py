"""The audit log of the control plane."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from exclave.control.access import require
from exclave.control.deps import Deps
from exclave.control.pagination import clamp, make_page
from exclave.domain.audit import AuditRecord
from exclave.domain.identity import OrgId, Right, User
from exclave.storage import audit
from exclave.storage.engine.database import Tx
from exclave.wire.identity import AuditEntry
from exclave.wire.model import Page

OPERATOR = "operator of the server"
"""The actor of what was done on the machine of the server, not over the API."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the audit log: who did what to which object."""

    org: OrgId
    actor: str
    action: str
    subject: str
    detail: Mapping[str, str] = field(default_factory=dict)


def record(
    tx: Tx, deps: Deps, org: OrgId, actor: str, action: str, subject: str, **detail: str
) -> None:
    """Store an entry in the transaction that does the audited thing."""
    record_all(tx, deps, [Entry(org, actor, action, subject, detail)])


def record_all(tx: Tx, deps: Deps, entries: Sequence[Entry]) -> None:
    """Store several entries of one transaction."""
    audit.add_entries(
        tx,
        [
            AuditRecord(
                org_id=entry.org,
                id=deps.ids.new("aud"),
                at=tx.now,
                actor=entry.actor,
                action=entry.action,
                subject=entry.subject,
                detail=dict(entry.detail),
            )
            for entry in entries
        ],
    )


async def list_audit(deps: Deps, user: User, cursor: str, limit: int) -> Page[AuditEntry]:
    """List the audit log, newest first."""
    require(user, Right.ADMINISTER)
    wanted = clamp(limit)
    rows = await deps.db.read(lambda tx: audit.list_entries(tx, user.org, cursor, wanted + 1))
    return make_page(rows, wanted, _show)


def _show(row: AuditRecord) -> AuditEntry:
    return AuditEntry(
        id=row.id,
        at=row.at,
        actor=row.actor,
        action=row.action,
        subject=row.subject,
        detail=dict(row.detail),
    )
