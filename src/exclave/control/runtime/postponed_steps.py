"""Steps whose jobs cannot be created in a transaction, as their texts take too long to render."""

import asyncio

from exclave.domain.identity import OrgId
from exclave.domain.workflows import Step, WorkflowId

_MOST = 1_000
"""Maximum number of workflows that are remembered per org; the sweeper finds the others."""


class Postponed:
    """Kept in memory only: the steps are stored as pending, so the sweeper finds them too."""

    def __init__(self) -> None:
        self.added = asyncio.Event()
        self._steps: dict[OrgId, dict[WorkflowId, set[tuple[int, int]]]] = {}

    def add(self, org: OrgId, workflow: WorkflowId, step: Step) -> None:
        """Remember a step."""
        held = self._steps.setdefault(org, {})
        if workflow in held or len(held) < _MOST:
            held.setdefault(workflow, set()).add((step.index, step.attempt))
            self.added.set()

    def has(self, org: OrgId, workflow: WorkflowId, step: Step) -> bool:
        """Return whether a step is being prepared, so that it is not tried again meanwhile."""
        return (step.index, step.attempt) in self._steps.get(org, {}).get(workflow, ())

    def list_orgs(self) -> list[OrgId]:
        """Return the orgs that have postponed steps."""
        return list(self._steps)

    def first(self, org: OrgId) -> tuple[WorkflowId, frozenset[tuple[int, int]]] | None:
        """Return the workflow of an org that waits longest, and its postponed steps."""
        return next(
            ((workflow, frozenset(steps)) for workflow, steps in self._steps.get(org, {}).items()),
            None,
        )

    def drop(self, org: OrgId, workflow: WorkflowId, steps: frozenset[tuple[int, int]]) -> None:
        """Forget steps of a workflow; if others are left, it goes to the end of the line."""
        held = self._steps.get(org, {})
        left = held.pop(workflow, set()) - steps
        if left:
            held[workflow] = left
        if not held:
            self._steps.pop(org, None)
