"""Runs of actions in installs."""

from dataclasses import dataclass
from datetime import datetime

from exclave.base.json_values import JsonObject
from exclave.domain.jobs import JobState
from exclave.domain.workflows import WorkflowId


@dataclass(frozen=True, slots=True)
class ActionRun:
    """A run of an action, or of a script that a step of a runbook contains."""

    id: str
    action: str
    trigger: str
    """What started it: the type of a trigger of the action."""
    workflow_id: WorkflowId
    step: str
    state: JobState
    outputs: JsonObject
    message: str
    started_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class NewActionRun:
    """A run that begins."""

    id: str
    install_id: str
    action: str
    trigger: str
    workflow_id: WorkflowId
    step: str
