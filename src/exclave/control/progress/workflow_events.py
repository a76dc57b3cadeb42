"""Events of workflows, with what is stored together with them."""

from collections.abc import Callable
from dataclasses import dataclass

from exclave.base.json_values import JsonObject
from exclave.control.job_specs.rendering import Renderings
from exclave.domain.identity import OrgId, QueueId
from exclave.domain.jobs import EndedJob, Job, JobState, Reason
from exclave.domain.workflows import Workflow, WorkflowId, WorkflowKey
from exclave.flow.events import Event, GateDecision, JobEnded
from exclave.storage.engine.database import Tx

EventFactory = Callable[[Tx, QueueId, Workflow], Event]
"""Returns an event for the locked workflow; raises a `Problem` if it is not possible."""


@dataclass(frozen=True, slots=True)
class WorkflowEvent:
    """An event of one workflow, with the message and outputs that are stored with its step."""

    org: OrgId
    workflow: WorkflowId
    event: Event | EventFactory | None = None
    outputs: JsonObject | None = None
    message: str = ""
    by: str | None = None
    texts: Renderings | None = None
    """Texts of its steps that a worker process has rendered already."""

    @property
    def key(self) -> WorkflowKey:
        """The workflow's primary key."""
        return (self.org, self.workflow)


def make_end_event(
    job: Job | EndedJob,
    state: JobState,
    *,
    reason: Reason,
    digest: str = "",
    message: str = "",
    outputs: JsonObject | None = None,
    then: GateDecision = GateDecision.ASK,
) -> WorkflowEvent:
    """Return the event that ends a job's step."""
    event = JobEnded(job.step, job.step_attempt, state, digest, reason, then)
    return WorkflowEvent(job.org_id, job.workflow_id, event, outputs, message)
