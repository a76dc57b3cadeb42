"""The end of a build, and the workflows that waited for it."""

from collections.abc import Sequence
from dataclasses import dataclass

from exclave.domain.builds import BuildEnd
from exclave.domain.identity import OrgId
from exclave.domain.intents import read_intent
from exclave.domain.jobs import JobId
from exclave.domain.workflows import WorkflowId
from exclave.storage import builds, install_parts
from exclave.storage.engine.database import Tx

STEP = "builds"
"""The name of the step in which an install waits for the builds of its config."""


@dataclass(frozen=True, slots=True)
class Wait:
    """A waiting step whose builds have all ended."""

    workflow: WorkflowId
    position: int
    attempt: int


def end_build(
    tx: Tx, org: OrgId, build: str, end: BuildEnd, job: JobId | None = None
) -> Sequence[Wait]:
    """Store how a build ended; return the waiting steps whose builds have all ended now."""
    builds.end_build(tx, org, build, end, job)
    tx.wake(f"build:{build}")
    pinning = [config.id for config in builds.list_configs_of(tx, org, [build])]
    done = {config for config in pinning if not builds.has_pending(tx, org, config)}
    if not done:
        return ()
    return [
        Wait(WorkflowId(row.workflow_id), row.position, row.attempt)
        for row in install_parts.list_waiting(tx, org, STEP)
        if (stored := read_intent(row.spec)) is not None and stored.values.config in done
    ]
