"""A simulated world for directed scenarios: no faults but those that the test makes."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import select

from exclave.control.installs import installs
from exclave.control.workflows import workflows
from exclave.domain.workflows import WorkflowId
from exclave.storage.engine.database import AnyRow
from exclave.storage.tables.work import executions, jobs, lanes
from exclave.wire.workflows import NewStep, NewWorkflow
from tests.faults.sim.mix import Mix
from tests.faults.sim.run import World, quiet
from tests.support.world import job

_PATIENCE_S = 3600.0


class ScenarioDriver:
    """One install with some runners, and words for what a scenario does and sees."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.machines = world.machines
        self.control = world.control

    async def order(self, *steps: NewStep) -> WorkflowId:
        """Order a workflow for the first install."""
        wish = NewWorkflow(name="flow", queue_id=self.world.people.queues[0], steps=list(steps))
        reply = await self.do(workflows.create_workflow, wish)
        return WorkflowId(reply.id)

    async def do(self, use_case: Any, *args: Any) -> Any:
        """Do something as the operator; it must succeed."""
        deps = self.control.deps
        assert deps is not None
        return await use_case(deps, self.world.people.user, *args)

    async def release(self, lane: str) -> None:
        """Release a lane after a look."""
        await self.do(installs.release_lane, self.world.people.queues[0], lane, "looked at it")
        self.world.cloud.unsure.pop((self.world.people.queues[0], lane), None)

    async def until(self, what: Callable[[], bool]) -> None:
        """Wait until something is so."""
        end = asyncio.get_running_loop().time() + _PATIENCE_S
        while not what():
            assert asyncio.get_running_loop().time() < end, list(self.world.ledger.lines)[-40:]
            await asyncio.sleep(0.5)

    async def until_job(self, *states: str) -> AnyRow:
        """Wait until the newest job is in one of these states."""
        await self.until(lambda: bool(self.jobs) and self.jobs[-1].state in states)
        return self.jobs[-1]

    @property
    def jobs(self) -> Sequence[AnyRow]:
        """All jobs, oldest first."""
        rows: Sequence[AnyRow] = self.control.read(
            lambda tx: tx.all(select(jobs).order_by(jobs.c.created_at, jobs.c.id))
        )
        return rows

    @property
    def executions(self) -> Sequence[AnyRow]:
        """All executions, oldest first."""
        rows: Sequence[AnyRow] = self.control.read(
            lambda tx: tx.all(select(executions).order_by(executions.c.epoch))
        )
        return rows

    @property
    def lane_states(self) -> dict[str, str]:
        """The state of each lane that was ever used."""
        return {row.name: row.state for row in self.control.read(lambda tx: tx.all(select(lanes)))}

    @property
    def broken(self) -> list[str]:
        """The promises that were broken so far."""
        return self.world.ledger.broken


APPLY = job("apply", lanes=["component:a"], mutating=True)
PLAN = job("plan", lanes=["component:a"])


@asynccontextmanager
async def set_stage(
    folder: Path, *, runners: int = 1, step_s: float | None = None
) -> AsyncIterator[ScenarioDriver]:
    """Set up a world without faults and without people who act by themselves."""
    world = World(1, folder, Mix(runners=(runners, 0), step_s=step_s))
    with quiet():
        try:
            await world.begin()
            yield ScenarioDriver(world)
        finally:
            await world.end()
