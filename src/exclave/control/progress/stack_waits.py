"""Workflows that wait for the customer's Stack: its report lets them continue."""

from exclave.control.deps import Deps
from exclave.control.progress.advance import advance
from exclave.control.progress.workflow_events import WorkflowEvent
from exclave.control.stack_versions.versions import find_current
from exclave.domain.identity import OrgId
from exclave.domain.stacks import StackState
from exclave.domain.workflows import WorkflowId
from exclave.flow.events import Answered
from exclave.storage import install_parts, installs
from exclave.storage.engine.database import Tx

STEP = "stack"
"""The name of the step that waits for the Stack."""


def answer_active(tx: Tx, deps: Deps, org: OrgId, install: str) -> None:
    """Complete the waiting steps of an install whose Stack is active already."""
    current = find_current(tx, org, install)
    if current is not None and current.state is StackState.ACTIVE:
        answer_waits(tx, deps, org, install, "stack")


def try_again(tx: Tx, deps: Deps, org: OrgId, install: str) -> None:
    """Let an install's running workflows try the steps that waited for what a Stack has now."""
    running = installs.list_running(tx, org, install)
    advance(tx, deps, [WorkflowEvent(org, WorkflowId(workflow)) for workflow in running])


def answer_waits(tx: Tx, deps: Deps, org: OrgId, install: str, by: str) -> None:
    """Complete the steps of workflows that wait for this Stack."""
    waiting = install_parts.list_waiting(tx, org, STEP, [install])
    if waiting:
        advance(
            tx,
            deps,
            [
                WorkflowEvent(org, wait.workflow_id, Answered(wait.position, wait.attempt), by=by)
                for wait in waiting
            ],
        )
