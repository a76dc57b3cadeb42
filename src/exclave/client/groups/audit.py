"""Calls about the audit log."""

from exclave.client.control_http import ControlHttp
from exclave.wire.identity import AuditEntry
from exclave.wire.model import Page


class Audit:
    """The audit log of the org."""

    def __init__(self, http: ControlHttp) -> None:
        self._http = http

    async def list(self, cursor: str | None = None, limit: int = 100) -> Page[AuditEntry]:
        """Return a page of audit entries, newest first."""
        return await self._http.list_page(AuditEntry, "/v1/audit", cursor, limit)
