"""Queries for what scans for drift found in the parts of installs."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, delete, insert, select, update

from exclave.domain.drift_findings import OPEN, DriftFinding, FindingState, ReportedFinding
from exclave.domain.identity import OrgId
from exclave.storage.engine.database import Tx
from exclave.storage.tables.installs import drift_findings

_AT = drift_findings.c
_SELECT = select(*(column for column in _AT if column.name not in {"org_id", "install_id"}))


def list_of_part(tx: Tx, org: OrgId, install: str, part: str) -> Sequence[DriftFinding]:
    """List all findings of a part, also those that are gone."""
    return tx.all(_SELECT.where(*_of_part(org, install, part)).order_by(_AT.id), DriftFinding)


def list_findings(
    tx: Tx,
    org: OrgId,
    install: str,
    *,
    before: str,
    limit: int,
    part: str | None,
    states: Sequence[FindingState],
) -> Sequence[DriftFinding]:
    """List findings in some states, newest first."""
    query = _SELECT.where(_AT.org_id == org, _AT.install_id == install, _AT.state.in_(states))
    if part is not None:
        query = query.where(_AT.part == part)
    if before:
        query = query.where(_AT.id < before)
    return tx.all(query.order_by(_AT.id.desc()).limit(limit), DriftFinding)


def find_finding(tx: Tx, org: OrgId, install: str, finding: str) -> DriftFinding | None:
    """Find a finding of an install."""
    return tx.first(_SELECT.where(*_is(org, install, finding)), DriftFinding)


def add_finding(
    tx: Tx, org: OrgId, install: str, part: str, finding: str, report: ReportedFinding
) -> None:
    """Store a finding that no scan reported before."""
    times = {"first_at": tx.now, "last_at": tx.now, "changed_at": tx.now}
    tx.run(
        insert(drift_findings).values(
            org_id=org,
            id=finding,
            install_id=install,
            part=part,
            fingerprint=report.fingerprint,
            **report._asdict(),
            state=FindingState.NEW,
            **times,
            by="",
            reason="",
        )
    )


def note_found(
    tx: Tx,
    org: OrgId,
    install: str,
    known: DriftFinding,
    report: ReportedFinding,
    state: FindingState,
) -> None:
    """Store that a scan found a finding again, in the state that it is in now."""
    expected = (_AT.state == known.state, _AT.content == known.content)
    change = update(drift_findings).where(*_is(org, install, known.id), *expected)
    change = change.values(last_at=tx.now, detail=report.detail, content=report.content)
    if state is not known.state:
        change = change.values(state=state, changed_at=tx.now, by="", reason="")
    tx.run(change)


def close_others(tx: Tx, org: OrgId, install: str, part: str, fingerprints: Sequence[str]) -> None:
    """Store that all other findings of a part are gone."""
    others = () if not fingerprints else (_AT.fingerprint.not_in(fingerprints),)
    _close(tx, *_of_part(org, install, part), *others)


def close_all(tx: Tx, org: OrgId, install: str, part: str) -> None:
    """Store that all findings of a part are gone, because it was torn down."""
    _close(tx, *_of_part(org, install, part))


def accept(
    tx: Tx, org: OrgId, install: str, finding: str, *, content: str, by: str, reason: str
) -> bool:
    """Accept this content of an open finding; false if it is not open, or another one by now."""
    expected = (_AT.state.in_(OPEN), _AT.content == content)
    values = {
        "state": FindingState.ACCEPTED,
        "changed_at": tx.now,
        "by": by,
        "reason": reason,
    }
    change = update(drift_findings).where(*_is(org, install, finding), *expected)
    return tx.run(change.values(**values)).rowcount == 1


def reopen(tx: Tx, org: OrgId, install: str, finding: str) -> bool:
    """Withdraw the acceptance of a finding; false if it was not accepted."""
    values = {"state": FindingState.SEEN, "changed_at": tx.now, "by": "", "reason": ""}
    expected = _AT.state == FindingState.ACCEPTED
    change = update(drift_findings).where(*_is(org, install, finding), expected)
    return tx.run(change.values(**values)).rowcount == 1


def drop_gone(tx: Tx, org: OrgId, install: str, part: str, before: datetime) -> None:
    """Forget findings of a part that have been gone for long."""
    old = (_AT.state == FindingState.GONE, _AT.changed_at < before)
    tx.run(delete(drift_findings).where(*_of_part(org, install, part), *old))


def _close(tx: Tx, *which: ColumnElement[bool]) -> None:
    values = {"state": FindingState.GONE, "changed_at": tx.now, "by": "", "reason": ""}
    tx.run(update(drift_findings).where(*which, _AT.state != FindingState.GONE).values(**values))


def _is(org: OrgId, install: str, finding: str) -> tuple[ColumnElement[bool], ...]:
    return (_AT.org_id == org, _AT.install_id == install, _AT.id == finding)


def _of_part(org: OrgId, install: str, part: str) -> tuple[ColumnElement[bool], ...]:
    return (_AT.org_id == org, _AT.install_id == install, _AT.part == part)
