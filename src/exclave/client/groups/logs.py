"""Calls about the logs of jobs."""

from collections.abc import AsyncIterator

from exclave.client.control_http import ControlHttp, part
from exclave.client.event_stream import OnOutage
from exclave.client.following import BEGIN, LogPosition, follow_log
from exclave.wire.logs import LogMatches, LogPage, LogRecord


class Logs:
    """Logs: read, follow, search."""

    def __init__(self, http: ControlHttp) -> None:
        self._http = http

    async def read(
        self, job_id: str, start: LogPosition = BEGIN, *, limit: int | None = None
    ) -> AsyncIterator[LogRecord]:
        """Yield the records of one execution from a position to the present end."""
        path = f"/v1/jobs/{part(job_id)}/logs"
        execution, offset = start.execution or None, start.offset
        while True:
            page = await self._http.get(
                LogPage, path, execution=execution, offset=offset, limit=limit
            )
            for record in page.records:
                yield record
            if page.complete or not page.records:
                return
            execution, offset = page.execution_id, page.next_offset

    def follow(
        self, job_id: str, start: LogPosition = BEGIN, on_outage: OnOutage | None = None
    ) -> AsyncIterator[LogRecord]:
        """Yield the records after a position, until the job has ended and its log is complete."""
        return follow_log(self._http, job_id, start, on_outage)

    async def search_job(self, job_id: str, text: str, cursor: str | None = None) -> LogMatches:
        """Search the log of one job."""
        path = f"/v1/jobs/{part(job_id)}/logs/search"
        return await self._http.get(LogMatches, path, q=text, cursor=cursor)

    async def search(
        self, text: str, queue_id: str | None = None, cursor: str | None = None
    ) -> LogMatches:
        """Search the logs of all jobs, or of those of one queue."""
        return await self._http.get(
            LogMatches, "/v1/logs/search", q=text, queue_id=queue_id, cursor=cursor
        )
