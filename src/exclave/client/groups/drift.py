"""Calls about what scans for drift found in installs."""

from exclave.client.control_http import ControlHttp, part
from exclave.wire.drift_findings import (
    AcceptFinding,
    DriftFindingReply,
    FindingState,
    ReopenFinding,
)
from exclave.wire.model import Page


class DriftFindings:
    """What scans for drift found in an install."""

    def __init__(self, http: ControlHttp) -> None:
        self._http = http

    async def list(
        self,
        install_id: str,
        cursor: str | None = None,
        limit: int = 100,
        *,
        of_part: str | None = None,
        state: FindingState | None = None,
    ) -> Page[DriftFindingReply]:
        """Return a page of findings, newest first; those that are gone only by their state."""
        path = _make_path(install_id)
        return await self._http.list_page(
            DriftFindingReply, path, cursor, limit, part=of_part, state=state
        )

    async def get(self, install_id: str, finding: str) -> DriftFindingReply:
        """Return a finding."""
        return await self._http.get(DriftFindingReply, _make_path(install_id, finding))

    async def accept(self, install_id: str, finding: str, body: AcceptFinding) -> DriftFindingReply:
        """Accept a finding as it was looked at."""
        path = f"{_make_path(install_id, finding)}/accept"
        return await self._http.post(DriftFindingReply, path, body)

    async def reopen(self, install_id: str, finding: str, body: ReopenFinding) -> DriftFindingReply:
        """Withdraw the acceptance of a finding."""
        path = f"{_make_path(install_id, finding)}/reopen"
        return await self._http.post(DriftFindingReply, path, body)


def _make_path(install_id: str, finding: str = "") -> str:
    path = f"/v1/installs/{part(install_id)}/drift-findings"
    return f"{path}/{part(finding)}" if finding else path
