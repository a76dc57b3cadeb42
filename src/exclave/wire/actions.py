"""Actions and runbooks of an install over the Control API."""

from datetime import datetime
from typing import Annotated

from pydantic import Field, JsonValue, StringConstraints

from exclave.wire.model import Id, Reply, Request
from exclave.wire.spec_fields import Env
from exclave.wire.workflows import WorkflowReply as WorkflowReply

ActionName = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00]*$")]


class TriggerReply(Reply):
    """When an action runs."""

    type: str
    component: str = ""
    cron: str = ""
    next_at: datetime | None = None
    """Of a cron: when it is due next."""
    note: str = ""
    """Of a cron: why its last tick did nothing."""


class RunReply(Reply):
    """One run of an action."""

    id: Id
    action: str
    trigger: str
    state: str
    workflow_id: Id
    step: str
    message: str
    outputs: dict[str, JsonValue]
    started_at: datetime
    finished_at: datetime | None


class ActionReply(Reply):
    """An action, its triggers and its last run."""

    name: str
    triggers: list[TriggerReply]
    steps: list[str]
    timeout: str
    last_run: RunReply | None = None


class RunAction(Request):
    """Run an action now; `env` overrides the action's own environment."""

    action: ActionName
    env: Env = {}
    role: Annotated[str, StringConstraints(max_length=200)] = ""


class RunbookInputReply(Reply):
    """An input of a runbook."""

    name: str
    type: str
    description: str
    required: bool
    default: str | None
    sensitive: bool = False


class RunbookReply(Reply):
    """A runbook and its steps, in order."""

    name: str
    description: str
    inputs: list[RunbookInputReply]
    steps: list[str]


class RunRunbook(Request):
    """Run a runbook now."""

    runbook: ActionName
    inputs: Annotated[
        dict[ActionName, Annotated[str, StringConstraints(max_length=65_536)]],
        Field(max_length=200),
    ] = {}
