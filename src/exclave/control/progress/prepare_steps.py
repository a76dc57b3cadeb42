"""Create the jobs of steps whose texts worker processes render, outside of transactions."""

import asyncio

from exclave.base.errors import Kind, Problem
from exclave.base.logs import Log
from exclave.control.deps import Deps
from exclave.control.job_specs.rendering import Renderings, write_rendered
from exclave.control.progress.advance import advance
from exclave.control.progress.workflow_events import WorkflowEvent
from exclave.domain.identity import OrgId
from exclave.domain.workflows import WorkflowId
from exclave.storage.engine.database import Tx

log = Log("preparing")

_PAUSE_S = 1.0
_TRIES = 3


async def run_preparer(deps: Deps) -> None:
    """Prepare postponed steps until cancelled: orgs concurrently, the workflows of one in order."""
    running: dict[OrgId, asyncio.Task[None]] = {}
    try:
        while True:
            await deps.postponed.added.wait()
            deps.postponed.added.clear()
            for org in deps.postponed.list_orgs():
                if org not in running or running[org].done():
                    running[org] = asyncio.create_task(prepare_all(deps, org))
            running = {org: task for org, task in running.items() if not task.done()}
    finally:
        for task in running.values():
            task.cancel()
        await asyncio.gather(*running.values(), return_exceptions=True)


async def prepare_all(deps: Deps, org: OrgId) -> None:
    """Prepare all postponed steps of an org. Those that fail are found again by the sweeper."""
    while entry := deps.postponed.first(org):
        workflow, steps = entry
        try:
            await _prepare_patiently(deps, org, workflow)
        except Exception as error:  # noqa: BLE001 - the edge of a background task
            log.error("preparing_failed", exc=error, org=org, workflow=workflow)
        finally:
            deps.postponed.drop(org, workflow, steps)


async def prepare(deps: Deps, org: OrgId, workflow: WorkflowId) -> None:
    """Render the texts that a workflow's steps need from the newest state, then advance it.

    The transaction that makes the jobs reads everything again, under lock. A step that began or was
    cancelled meanwhile, perhaps by another server, is left alone; a newer state is rendered anew.
    """

    def go_on(tx: Tx, texts: Renderings) -> None:
        advance(tx, deps, [WorkflowEvent(org, workflow, texts=texts)])

    await write_rendered(deps, org, go_on)


async def _prepare_patiently(deps: Deps, org: OrgId, workflow: WorkflowId) -> None:
    for left in reversed(range(_TRIES)):
        try:
            await prepare(deps, org, workflow)
        except Problem as problem:
            if problem.kind not in {Kind.TOO_MANY, Kind.UNAVAILABLE, Kind.CONFLICT} or not left:
                raise
        else:
            return
        await deps.clock.sleep(_PAUSE_S)
