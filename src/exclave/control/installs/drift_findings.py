"""Use cases of drift findings: list them, accept one, reopen one."""

from collections.abc import Callable

from exclave.base.errors import Conflict, NotFound
from exclave.control.audit import record
from exclave.control.deps import Deps
from exclave.control.installs.access import get_app_install
from exclave.control.pagination import clamp, make_page
from exclave.control.progress.drift_results import decide_again
from exclave.domain.drift_findings import DriftFinding, FindingState
from exclave.domain.identity import InstallId, Right, User
from exclave.storage import drift_findings
from exclave.storage.engine.database import Tx
from exclave.wire.drift_findings import AcceptFinding, DriftFindingReply, ReopenFinding
from exclave.wire.model import Page

_PRESENT = tuple(state for state in FindingState if state is not FindingState.GONE)


async def list_findings(
    deps: Deps,
    user: User,
    install: InstallId,
    *,
    cursor: str,
    limit: int,
    part: str | None,
    state: FindingState | None,
) -> Page[DriftFindingReply]:
    """List what scans found in an install, newest first; those that are gone only by wish."""
    most = clamp(limit)

    def read(tx: Tx) -> Page[DriftFindingReply]:
        get_app_install(tx, user, install, Right.READ)
        rows = drift_findings.list_findings(
            tx,
            user.org,
            install,
            before=cursor,
            limit=most + 1,
            part=part,
            states=_PRESENT if state is None else (state,),
        )
        return make_page(rows, most, _show)

    return await deps.db.read(read)


async def show_finding(
    deps: Deps, user: User, install: InstallId, finding: str
) -> DriftFindingReply:
    """Show a finding."""

    def read(tx: Tx) -> DriftFindingReply:
        get_app_install(tx, user, install, Right.READ)
        return _show(_get(tx, user, install, finding))

    return await deps.db.read(read)


async def accept_finding(
    deps: Deps, user: User, install: InstallId, finding: str, body: AcceptFinding
) -> DriftFindingReply:
    """Accept a finding with the content that was looked at; scans no longer count it as drift."""

    def accept(tx: Tx) -> None:
        if not drift_findings.accept(
            tx,
            user.org,
            install,
            finding,
            content=body.content,
            by=user.name,
            reason=body.reason,
        ):
            raise Conflict(
                "the finding is not open, or not what was looked at",
                hint="List the findings again: a scan may have changed this one.",
            )

    return await _change(deps, user, install, finding, "drift_accepted", body.reason, accept)


async def reopen_finding(
    deps: Deps, user: User, install: InstallId, finding: str, body: ReopenFinding
) -> DriftFindingReply:
    """Withdraw the acceptance of a finding."""

    def reopen(tx: Tx) -> None:
        if not drift_findings.reopen(tx, user.org, install, finding):
            raise Conflict("the finding is not accepted", hint="List the findings again.")

    return await _change(deps, user, install, finding, "drift_reopened", body.reason, reopen)


async def _change(
    deps: Deps,
    user: User,
    install: InstallId,
    finding: str,
    event: str,
    reason: str,
    change: Callable[[Tx], None],
) -> DriftFindingReply:
    """Change the state of a finding, and what it means for its part."""

    def write(tx: Tx) -> DriftFindingReply:
        get_app_install(tx, user, install, Right.OPERATE, lock=True)
        before = _get(tx, user, install, finding)
        change(tx)
        decide_again(tx, user.org, install, before.part)
        subject = f"{before.address} {before.path}".strip()
        record(
            tx,
            deps,
            user.org,
            user.name,
            event,
            install,
            part=before.part,
            finding=subject,
            reason=reason,
        )
        return _show(_get(tx, user, install, finding))

    return await deps.db.write(write, key=install)


def _get(tx: Tx, user: User, install: InstallId, finding: str) -> DriftFinding:
    row = drift_findings.find_finding(tx, user.org, install, finding)
    if row is None:
        raise NotFound("there is no such finding")
    return row


def _show(finding: DriftFinding) -> DriftFindingReply:
    return DriftFindingReply(
        id=finding.id,
        part=finding.part,
        address=finding.address,
        path=finding.path,
        change=finding.change,
        detail=finding.detail,
        content=finding.content,
        state=finding.state,
        first_at=finding.first_at,
        last_at=finding.last_at,
        changed_at=finding.changed_at,
        accepted_by=finding.by,
        reason=finding.reason,
    )
