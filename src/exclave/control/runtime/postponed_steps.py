"""Steps whose jobs cannot be made inside of a transaction, because their texts cost too much."""

import asyncio

from exclave.domain.identity import OrgId
from exclave.domain.workflows import Step, WorkflowId

_MOST = 1_000
"""Workflows of one org that are remembered; the sweeper finds the others."""


class Postponed:
    """Remembers them in memory only: they are pending steps, so the sweeper finds them too."""

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
        """Tell whether a step is being prepared, so that trying it again is of no use."""
        return (step.index, step.attempt) in self._steps.get(org, {}).get(workflow, ())

    def list_orgs(self) -> list[OrgId]:
        """List the orgs that have some."""
        return list(self._steps)

    def first(self, org: OrgId) -> tuple[WorkflowId, frozenset[tuple[int, int]]] | None:
        """Find the workflow of an org that waits longest, and what it waits for."""
        return next(
            ((workflow, frozenset(steps)) for workflow, steps in self._steps.get(org, {}).items()),
            None,
        )

    def drop(self, org: OrgId, workflow: WorkflowId, steps: frozenset[tuple[int, int]]) -> None:
        """Forget steps of a workflow; one with others left gets in line again."""
        held = self._steps.get(org, {})
        left = held.pop(workflow, set()) - steps
        if left:
            held[workflow] = left
        if not held:
            self._steps.pop(org, None)
