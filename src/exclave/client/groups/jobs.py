"""Calls about jobs."""

from exclave.client.control_http import ControlHttp, part
from exclave.wire.jobs import DeclareLost, JobReply, JobState
from exclave.wire.model import Page


class Jobs:
    """Jobs and their executions."""

    def __init__(self, http: ControlHttp) -> None:
        self._http = http

    async def list(
        self,
        cursor: str | None = None,
        limit: int = 100,
        *,
        queue_id: str | None = None,
        workflow_id: str | None = None,
        state: JobState | None = None,
    ) -> Page[JobReply]:
        """Return a page of jobs, newest first."""
        return await self._http.list_page(
            JobReply,
            "/v1/jobs",
            cursor,
            limit,
            queue_id=queue_id,
            workflow_id=workflow_id,
            state=state,
        )

    async def get(self, job_id: str) -> JobReply:
        """Return a job with its executions."""
        return await self._http.get(JobReply, f"/v1/jobs/{part(job_id)}")

    async def cancel(self, job_id: str) -> JobReply:
        """Request the cancellation of a job."""
        return await self._http.post(JobReply, f"/v1/jobs/{part(job_id)}/cancel")

    async def declare_lost(self, job_id: str, body: DeclareLost) -> JobReply:
        """Declare that the machine which ran the job is gone."""
        return await self._http.post(JobReply, f"/v1/jobs/{part(job_id)}/declare-lost", body)
