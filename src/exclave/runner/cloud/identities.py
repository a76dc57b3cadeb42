"""The roles of jobs in a cloud: decides whether a job may run, and opens its endpoint."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime

from exclave.base.clock import Clock
from exclave.base.ids import Randomness
from exclave.base.json_values import text_or_empty
from exclave.runner.audit import Audit
from exclave.runner.cloud.accounts import CloudAccount, Credential, RoleSession
from exclave.runner.cloud.broker import Broker, Owner
from exclave.runner.cloud.credentials import JobCredentials
from exclave.runner.cloud.document import CloudDocument
from exclave.runner.cloud.endpoints import (
    AwsEndpoint,
    AzureEndpoint,
    Endpoint,
    GcpEndpoint,
    Keys,
)
from exclave.runner.jobs.identity import IsOver, JobIdentity
from exclave.runner.jobs.loopback import make_secret
from exclave.runner.logs.spool import LogWriter
from exclave.runner.outcomes import WorkFailed
from exclave.runner.processes.cell import Cell
from exclave.wire.jobs import Reason
from exclave.wire.roles import RoleWish
from exclave.wire.runner import Dispatch
from exclave.wire.stacks import Cloud

AdviseCustomer = Callable[[str], str]
"""Returns what the customer does to switch a role on."""


@dataclass(frozen=True, slots=True)
class CloudIdentities:
    """Opens the roles of jobs, as the document of the Stack says now."""

    cloud: Cloud
    account: CloudAccount
    read_document: Callable[[], CloudDocument | None]
    clock: Clock
    randomness: Randomness
    audit: Audit
    advise: AdviseCustomer
    find_fault: Callable[[], str] = str
    """Why no job may run on this machine; empty if they may."""

    @asynccontextmanager
    async def open(
        self, dispatch: Dispatch, cell: Cell, log: LogWriter, is_over: IsOver
    ) -> AsyncIterator[JobIdentity | None]:
        """Yield the role of a job; None if it has none. Raise `WorkFailed` if it may not run."""
        fault = self.find_fault()
        if fault:
            raise WorkFailed(Reason.METADATA_OPEN, fault)
        document = self.read_document()
        role: RoleWish | None = getattr(dispatch.spec, "role", None)
        if document is not None:
            refuse_in_plan_only(document, dispatch)
        if role is None:
            yield None
            return
        reference = find_reference(document, role.name, self.advise, self.clock.now())
        session = RoleSession(
            reference, dispatch.execution_id, dispatch.job_id, describe_job(dispatch, role)
        )
        credentials = self._make_credentials(session, role, log)
        endpoint = self._make_endpoint(document, credentials)
        uid = None if cell.user is None else cell.user.uid
        owner = Owner(dispatch.execution_id, uid, lambda: is_over() or self._has_ended(role.name))
        async with Broker(endpoint, credentials, owner, self.audit, log) as broker:
            log.system(f"this job runs as the role `{role.name}` ({role.operation})")
            yield broker

    def _has_ended(self, name: str) -> bool:
        """Return whether the time of a role for emergencies is over."""
        document = self.read_document()
        end = None if document is None else document.role_ends.get(name)
        return end is not None and end <= self.clock.now()

    def _make_credentials(
        self, session: RoleSession, role: RoleWish, log: LogWriter
    ) -> JobCredentials:
        def note(credential: Credential, resource: str) -> None:
            log.hide(credential.secrets)
            self.audit.write(
                "credential_issued",
                execution_id=session.execution,
                job_id=session.job,
                role=role.name,
                reference=session.role,
                resource=resource,
                expires_at=credential.expires_at.isoformat(),
            )

        return JobCredentials(self.account, session, self.clock, note)

    def _make_endpoint(
        self, document: CloudDocument | None, credentials: JobCredentials
    ) -> Endpoint:
        outputs = {} if document is None else document.outputs
        keys = Keys(make_secret(self.randomness), make_secret(self.randomness))
        region = text_or_empty(outputs.get("region"))
        match self.cloud:
            case Cloud.GCP:
                project = text_or_empty(outputs.get("project_id"))
                return GcpEndpoint(credentials, self.clock, project, region)
            case Cloud.AZURE:
                tenant = text_or_empty(outputs.get("subscription_tenant_id"))
                subscription = text_or_empty(outputs.get("subscription_id"))
                return AzureEndpoint(credentials, self.clock, keys, tenant, subscription)
            case Cloud.AWS | Cloud.LOCAL:
                return AwsEndpoint(credentials, keys, region)


def refuse_in_plan_only(document: CloudDocument, dispatch: Dispatch) -> None:
    """Refuse a job that changes something if the customer lets the runner only plan."""
    if document.mode == "plan-only" and dispatch.mutating:
        raise WorkFailed(
            Reason.PLAN_ONLY,
            "the customer lets this runner only plan: set the Stack's RunnerMode to `full`",
        )


def find_reference(
    document: CloudDocument | None, name: str, advise: AdviseCustomer, now: datetime
) -> str:
    """Return what a role is in the cloud; `WorkFailed` unless the customer's Stack has it on."""
    if document is None or name not in document.roles:
        message = f"the Stack has no role `{name}`: the customer has to run its newest version"
        raise WorkFailed(Reason.ROLE_UNKNOWN, message)
    if not document.roles[name]:
        message = (
            f"the customer has switched the role `{name}` off; to switch it on: {advise(name)}"
        )
        raise WorkFailed(Reason.ROLE_DISABLED, message)
    end = document.role_ends.get(name)
    if end is not None and end <= now:
        message = (
            f"the time of the role `{name}` is over: the customer can set a later end of"
            " break-glass in the Stack"
        )
        raise WorkFailed(Reason.ROLE_DISABLED, message)
    reference = document.role_references.get(name, "")
    if not reference:
        message = f"the Stack does not say what the role `{name}` is in the cloud"
        raise WorkFailed(Reason.ROLE_UNKNOWN, message)
    return reference


def describe_job(dispatch: Dispatch, role: RoleWish) -> dict[str, str]:
    """Return the tags of a job's session, which the cloud's audit log keeps."""
    workspace = str(getattr(dispatch.spec, "workspace", ""))
    tags = {
        "exclave:install": dispatch.queue_id,
        "exclave:job": dispatch.job_id,
        "exclave:component": workspace.removeprefix("component:"),
        "exclave:operation": role.operation,
    }
    return {name: text for name, text in tags.items() if text}
