"""Workflows that wait for the customer's Stack: its report lets them continue."""

from exclave.control.deps import Deps
from exclave.control.progress.advance import WorkflowEvent, advance
from exclave.domain.identity import OrgId
from exclave.domain.stacks import StackState
from exclave.flow.events import Answered
from exclave.storage import install_parts, stacks
from exclave.storage.engine.database import Tx

STEP = "stack"
"""The name of the step that waits for the Stack."""


def answer_active(tx: Tx, deps: Deps, org: OrgId, install: str) -> None:
    """Complete the waiting steps of an install whose Stack is active already."""
    newest = stacks.find_newest(tx, org, install)
    if newest is not None and newest.state is StackState.ACTIVE:
        answer_waits(tx, deps, org, install, "stack")


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
