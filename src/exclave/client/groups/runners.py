"""Calls about runners."""

from exclave.client.control_http import ControlHttp, part
from exclave.wire.identity import EnrolmentCreated, NewEnrolment, RevokeRunner, RunnerReply
from exclave.wire.model import Page


class Runners:
    """Runners of the org."""

    def __init__(self, http: ControlHttp) -> None:
        self._http = http

    async def list(self, cursor: str | None = None, limit: int = 100) -> Page[RunnerReply]:
        """Return a page of the org's runners."""
        return await self._http.list_page(RunnerReply, "/v1/runners", cursor, limit)

    async def get(self, runner_id: str) -> RunnerReply:
        """Return a runner."""
        return await self._http.get(RunnerReply, f"/v1/runners/{part(runner_id)}")

    async def enrol(self, body: NewEnrolment) -> EnrolmentCreated:
        """Create a one-time token with which a runner joins a queue."""
        return await self._http.post(EnrolmentCreated, "/v1/enrolments", body)

    async def revoke(self, runner_id: str, body: RevokeRunner) -> RunnerReply:
        """Revoke the identity of a runner."""
        return await self._http.post(RunnerReply, f"/v1/runners/{part(runner_id)}/revoke", body)
