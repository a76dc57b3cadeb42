"""What scans for drift found in an install, and what people said to it."""

from exclave.api.credentials import DepsOf, UserOf
from exclave.api.idempotency import idempotent
from exclave.api.ids import FindingOf, InstallOf
from exclave.api.queries import FindingsOf
from exclave.api.routes import UserRoute, make_router
from exclave.control.installs import drift_findings
from exclave.wire.drift_findings import AcceptFinding, DriftFindingReply, ReopenFinding
from exclave.wire.model import Page

router = make_router("/v1/installs/{install}/drift-findings", "installs", UserRoute)


@router.get("")
async def list_drift_findings(
    install: InstallOf, query: FindingsOf, user: UserOf, deps: DepsOf
) -> Page[DriftFindingReply]:
    """List findings, newest first; those that are gone only with `state=gone`."""
    return await drift_findings.list_findings(
        deps,
        user,
        install,
        cursor=query.cursor,
        limit=query.limit,
        part=query.part,
        state=query.state,
    )


@router.get("/{finding}")
async def show_drift_finding(
    install: InstallOf, finding: FindingOf, user: UserOf, deps: DepsOf
) -> DriftFindingReply:
    """Show a finding."""
    return await drift_findings.show_finding(deps, user, install, finding)


@router.post("/{finding}/accept")
@idempotent()
async def accept_drift_finding(
    install: InstallOf, finding: FindingOf, body: AcceptFinding, user: UserOf, deps: DepsOf
) -> DriftFindingReply:
    """Accept a finding as it was looked at: it is no drift until its content changes."""
    return await drift_findings.accept_finding(deps, user, install, finding, body)


@router.post("/{finding}/reopen")
@idempotent()
async def reopen_drift_finding(
    install: InstallOf, finding: FindingOf, body: ReopenFinding, user: UserOf, deps: DepsOf
) -> DriftFindingReply:
    """Withdraw the acceptance of a finding: it is drift again."""
    return await drift_findings.reopen_finding(deps, user, install, finding, body)
