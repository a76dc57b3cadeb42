"""The audit log."""

from exclave.api.credentials import DepsOf, UserOf
from exclave.api.queries import PageOf
from exclave.api.routes import UserRoute, make_router
from exclave.control import audit
from exclave.wire.identity import AuditEntry
from exclave.wire.model import Page

router = make_router("/v1/audit", "audit", UserRoute)


@router.get("")
async def list_audit(page: PageOf, user: UserOf, deps: DepsOf) -> Page[AuditEntry]:
    """List the audit log, newest first."""
    return await audit.list_audit(deps, user, page.cursor, page.limit)
