"""The typed client of the Control API: one method per route, streams and pages included."""

from collections.abc import AsyncIterator
from typing import Self

from pydantic import BaseModel

from exclave.client.control_http import ControlCalls, part
from exclave.client.event_stream import Trouble
from exclave.client.following import BEGIN, LogPosition, follow_log, follow_workflow
from exclave.wire.identity import (
    AuditEntry,
    EnrolmentCreated,
    FourEyesReply,
    NewEnrolment,
    NewOrg,
    NewToken,
    OrgCreated,
    OrgReply,
    RevokeRunner,
    RunnerReply,
    SetFourEyes,
    TokenCreated,
    TokenInfo,
    TokenRevoked,
    WhoAmI,
)
from exclave.wire.installs import InstallDetail, InstallReply, NewInstall
from exclave.wire.jobs import DeclareLost, JobReply, JobState, ReleaseLane
from exclave.wire.logs import LogMatches, LogPage, LogRecord
from exclave.wire.model import Page
from exclave.wire.stacks import StackCreated, StackReply
from exclave.wire.usage import UsageReply
from exclave.wire.workflows import (
    NewWorkflow,
    SetApproveAll,
    WorkflowReply,
    WorkflowState,
    WorkflowSummary,
)


class ControlClient:
    """Speaks for one token. Use as `async with ControlClient(ControlCalls(…)) as client`."""

    def __init__(self, calls: ControlCalls) -> None:
        self.calls = calls

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.calls.close()

    async def whoami(self) -> WhoAmI:
        """Tell who the token speaks for."""
        return await self.calls.get(WhoAmI, "/v1/whoami")

    async def get_org(self) -> OrgReply:
        """Read the token's org."""
        return await self.calls.get(OrgReply, "/v1/org")

    async def get_usage(self) -> UsageReply:
        """Read what the org uses and may use."""
        return await self.calls.get(UsageReply, "/v1/org/usage")

    async def create_org(self, body: NewOrg) -> OrgCreated:
        """Make a new tenant; the reply holds the first token of its admin."""
        return await self.calls.post(OrgCreated, "/v1/orgs", body)

    async def get_four_eyes(self) -> FourEyesReply:
        """Read whether every change needs two people."""
        return await self.calls.get(FourEyesReply, "/v1/org/four-eyes")

    async def set_four_eyes(self, body: SetFourEyes) -> FourEyesReply:
        """Let every change need two people, or ask to end that."""
        return await self.calls.put(FourEyesReply, "/v1/org/four-eyes", body)

    async def list_tokens(self, cursor: str | None = None, limit: int = 100) -> Page[TokenInfo]:
        """Read a page of the org's tokens."""
        return await self.calls.get(Page[TokenInfo], "/v1/tokens", cursor=cursor, limit=limit)

    async def create_token(self, body: NewToken) -> TokenCreated:
        """Make a token; the reply holds its secret."""
        return await self.calls.post(TokenCreated, "/v1/tokens", body)

    async def confirm_token(self, token_id: str) -> None:
        """Vouch that a token belongs to a person of its own."""
        await self.calls.put_silent(f"/v1/tokens/{part(token_id)}/confirmed")

    async def revoke_token(
        self, token_id: str, *, cascade: bool = False, runners: bool = False, dry_run: bool = False
    ) -> TokenRevoked:
        """Make a token worthless, at once; with `cascade` also what was made with it."""
        wish = {"cascade": cascade, "runners": runners, "dry_run": dry_run}
        path = f"/v1/tokens/{part(token_id)}"
        return await self.calls.delete_told(
            TokenRevoked, path, **{name: "true" for name, on in wish.items() if on}
        )

    async def list_installs(
        self, cursor: str | None = None, limit: int = 100
    ) -> Page[InstallReply]:
        """Read a page of the org's installs."""
        return await self.calls.get(Page[InstallReply], "/v1/installs", cursor=cursor, limit=limit)

    async def create_install(self, body: NewInstall) -> InstallReply:
        """Make an install."""
        return await self.calls.post(InstallReply, "/v1/installs", body)

    async def get_install(self, install_id: str) -> InstallDetail:
        """Read an install with its parts, lanes, runners and last workflows."""
        return await self.calls.get(InstallDetail, f"/v1/installs/{part(install_id)}")

    async def release_lane(self, install_id: str, lane: str, body: ReleaseLane) -> InstallDetail:
        """Let work on a lane go on after a person has checked it."""
        path = f"/v1/installs/{part(install_id)}/lanes/{part(lane)}/release"
        return await self.calls.post(InstallDetail, path, body)

    async def create_stack(self, install_id: str) -> StackCreated:
        """Create a Stack for the customer of an install."""
        return await self.calls.post(StackCreated, f"/v1/installs/{part(install_id)}/stack")

    async def get_stack(self, install_id: str) -> StackReply:
        """Return what the customer's Stack reported last."""
        return await self.calls.get(StackReply, f"/v1/installs/{part(install_id)}/stack")

    async def enrol_runner(self, body: NewEnrolment) -> EnrolmentCreated:
        """Get a one-time token by which a runner joins a queue."""
        return await self.calls.post(EnrolmentCreated, "/v1/enrolments", body)

    async def list_runners(self, cursor: str | None = None, limit: int = 100) -> Page[RunnerReply]:
        """Read a page of the org's runners."""
        return await self.calls.get(Page[RunnerReply], "/v1/runners", cursor=cursor, limit=limit)

    async def get_runner(self, runner_id: str) -> RunnerReply:
        """Read a runner."""
        return await self.calls.get(RunnerReply, f"/v1/runners/{part(runner_id)}")

    async def revoke_runner(self, runner_id: str, body: RevokeRunner) -> RunnerReply:
        """Take a runner's identity away."""
        return await self.calls.post(RunnerReply, f"/v1/runners/{part(runner_id)}/revoke", body)

    async def list_workflows(
        self,
        cursor: str | None = None,
        limit: int = 100,
        *,
        queue_id: str | None = None,
        state: WorkflowState | None = None,
    ) -> Page[WorkflowSummary]:
        """Read a page of workflows, newest first."""
        return await self.calls.get(
            Page[WorkflowSummary],
            "/v1/workflows",
            cursor=cursor,
            limit=limit,
            queue_id=queue_id,
            state=state,
        )

    async def create_workflow(self, body: NewWorkflow) -> WorkflowReply:
        """Start a workflow."""
        return await self.calls.post(WorkflowReply, "/v1/workflows", body)

    async def get_workflow(self, workflow_id: str) -> WorkflowReply:
        """Read a workflow with its steps."""
        return await self.calls.get(WorkflowReply, f"/v1/workflows/{part(workflow_id)}")

    def follow_workflow(
        self, workflow_id: str, on_trouble: Trouble | None = None
    ) -> AsyncIterator[WorkflowReply]:
        """Yield the workflow now and after each change, until it is over."""
        return follow_workflow(self.calls, workflow_id, on_trouble)

    async def cancel_workflow(self, workflow_id: str) -> WorkflowReply:
        """Ask for the end of a workflow."""
        return await self.calls.post(WorkflowReply, f"/v1/workflows/{part(workflow_id)}/cancel")

    async def set_approve_all(self, workflow_id: str, body: SetApproveAll) -> WorkflowReply:
        """Switch automatic approval."""
        path = f"/v1/workflows/{part(workflow_id)}/approve-all"
        return await self.calls.put(WorkflowReply, path, body)

    async def answer_step(
        self, workflow_id: str, step: str, verb: str, body: BaseModel | None = None
    ) -> WorkflowReply:
        """Approve, deny, retry or skip a step, or send the event that it waits for."""
        path = f"/v1/workflows/{part(workflow_id)}/steps/{part(step)}/{verb}"
        return await self.calls.post(WorkflowReply, path, body)

    async def list_jobs(
        self,
        cursor: str | None = None,
        limit: int = 100,
        *,
        queue_id: str | None = None,
        workflow_id: str | None = None,
        state: JobState | None = None,
    ) -> Page[JobReply]:
        """Read a page of jobs, newest first."""
        return await self.calls.get(
            Page[JobReply],
            "/v1/jobs",
            cursor=cursor,
            limit=limit,
            queue_id=queue_id,
            workflow_id=workflow_id,
            state=state,
        )

    async def get_job(self, job_id: str) -> JobReply:
        """Read a job with its executions."""
        return await self.calls.get(JobReply, f"/v1/jobs/{part(job_id)}")

    async def cancel_job(self, job_id: str) -> JobReply:
        """Ask for the end of a job."""
        return await self.calls.post(JobReply, f"/v1/jobs/{part(job_id)}/cancel")

    async def declare_lost(self, job_id: str, body: DeclareLost) -> JobReply:
        """Say that the machine which ran the job is gone."""
        return await self.calls.post(JobReply, f"/v1/jobs/{part(job_id)}/declare-lost", body)

    async def read_log(
        self, job_id: str, start: LogPosition = BEGIN, *, limit: int | None = None
    ) -> AsyncIterator[LogRecord]:
        """Yield the records of one execution from a position to the present end."""
        path = f"/v1/jobs/{part(job_id)}/logs"
        execution, offset = start.execution or None, start.offset
        while True:
            page = await self.calls.get(
                LogPage, path, execution=execution, offset=offset, limit=limit
            )
            for record in page.records:
                yield record
            if page.complete or not page.records:
                return
            execution, offset = page.execution_id, page.next_offset

    def follow_log(
        self,
        job_id: str,
        start: LogPosition = BEGIN,
        on_trouble: Trouble | None = None,
    ) -> AsyncIterator[LogRecord]:
        """Yield the records after a position, until the job is over and its log is read."""
        return follow_log(self.calls, job_id, start, on_trouble)

    async def search_job_log(self, job_id: str, text: str, cursor: str | None = None) -> LogMatches:
        """Find text in the log of one job."""
        path = f"/v1/jobs/{part(job_id)}/logs/search"
        return await self.calls.get(LogMatches, path, q=text, cursor=cursor)

    async def search_logs(
        self, text: str, queue_id: str | None = None, cursor: str | None = None
    ) -> LogMatches:
        """Find text in the logs of all jobs of an install."""
        return await self.calls.get(
            LogMatches, "/v1/logs/search", q=text, queue_id=queue_id, cursor=cursor
        )

    async def list_audit(self, cursor: str | None = None, limit: int = 100) -> Page[AuditEntry]:
        """Read a page of who did what, newest first."""
        return await self.calls.get(Page[AuditEntry], "/v1/audit", cursor=cursor, limit=limit)
