"""The people of a simulated vendor: they order work, approve it, cancel it and clean up."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from sqlalchemy import select

from exclave.base.errors import Problem
from exclave.control.access import authenticate_user
from exclave.control.deps import Deps
from exclave.control.dispatch import runners
from exclave.control.installs import installs
from exclave.control.orgs import accounts
from exclave.control.workflows import jobs, workflows
from exclave.domain.identity import QueueId, RunnerId, User
from exclave.domain.jobs import JobId
from exclave.domain.workflows import StepKind, StepState, WorkflowId, WorkflowState
from exclave.runner.control_plane.identity import load_identity
from exclave.storage.engine.database import Tx
from exclave.storage.tables.work import lanes, steps
from exclave.storage.tables.work import workflows as table_workflows
from exclave.wire.installs import NewInstall
from exclave.wire.workflows import Approve, NewStep, NewWorkflow
from tests.faults.sim.control import TIMINGS, SimControl
from tests.faults.sim.ledger import Cloud, Ledger
from tests.faults.sim.mix import Mix
from tests.support.world import gate, job

_LANES = ("component:a", "component:b", "sandbox")
_LOOK_EVERY_S = 30.0
_ENDED_BADLY = (StepState.FAILED, StepState.LOST, StepState.CANCELLED)


@dataclass(frozen=True, slots=True)
class Waiting:
    """What waits for a person, and what still runs."""

    running: int
    gates: list[tuple[str, str, str]]
    to_repeat: list[tuple[str, str]]
    lanes: list[tuple[str, str]]


def find_waiting(tx: Tx) -> Waiting:
    """Find open gates, steps that ended badly in failed workflows, and lanes that need a look."""
    found = tx.all(select(table_workflows.c.id, table_workflows.c.state))
    states: dict[str, str] = {row.id: row.state for row in found}
    rows = tx.all(select(steps).where(steps.c.state.in_((StepState.ACTIVE, *_ENDED_BADLY))))
    blocked = select(lanes.c.queue_id, lanes.c.name).where(lanes.c.state == "needs_reconcile")
    return Waiting(
        running=sum(1 for state in states.values() if state == WorkflowState.RUNNING),
        gates=[
            (row.workflow_id, row.name, row.digest)
            for row in rows
            if row.kind == StepKind.GATE and row.state == StepState.ACTIVE
        ],
        to_repeat=[
            (row.workflow_id, row.name)
            for row in rows
            if row.kind == StepKind.JOB and states[row.workflow_id] == WorkflowState.FAILED
        ],
        lanes=[(row.queue_id, row.name) for row in tx.all(blocked)],
    )


class People:
    """One operator who does everything by hand, through the real use cases."""

    def __init__(
        self, control: SimControl, mix: Mix, random: Random, ledger: Ledger, cloud: Cloud
    ) -> None:
        self._cloud = cloud
        self._control = control
        self._mix = mix
        self._random = random
        self._ledger = ledger
        self.user: User | None = None
        self.queues: list[QueueId] = []
        self.ordered: list[WorkflowId] = []
        self.wanted = 0
        self._retried: dict[tuple[str, str], int] = {}

    async def set_up(self, deps: Deps) -> None:
        """Found an org with two installs."""
        made = await deps.db.write(lambda tx: accounts.create_org(tx, deps, "acme", "founder"))
        self.user = await authenticate_user(deps, made.token)
        for name in ("prod", "test"):
            reply = await installs.create_install(deps, self.user, NewInstall(name=name))
            self.queues.append(QueueId(reply.id))
        self.wanted = self._mix.workflows

    async def enrol(self, queue: QueueId) -> str:
        """Make a token by which a new machine joins."""
        while True:
            deps = self._control.deps
            if deps is not None and self.user is not None:
                return (await runners.create_enrolment(deps, self.user, queue)).token
            await asyncio.sleep(1.0)

    async def order_all(self) -> None:
        """Order workflows one after the other, in the first minutes."""
        for number in range(self.wanted):
            queue = self._random.choice((self.queues[0], *self.queues))
            steps = draw_steps(self._random)
            wish = NewWorkflow(name=f"flow-{number}", queue_id=queue, steps=steps)
            self.ordered.append(await self._order(wish))
            await asyncio.sleep(self._random.expovariate(1 / 20.0))

    async def care(self) -> None:
        """Look at everything from time to time, and do what waits for a person."""
        while True:
            await asyncio.sleep(_LOOK_EVERY_S * self._random.uniform(0.5, 1.5))
            found = self._control.read(find_waiting)
            for queue, lane in found.lanes if self._may_look() else ():
                if await self._do("release", installs.release_lane, queue, lane, "looked at it"):
                    self._cloud.unsure.pop((queue, lane), None)
            for workflow, step, digest in found.gates:
                await asyncio.sleep(self._random.expovariate(1 / self._mix.late_answers_s))
                await self._approve(workflow, step, digest)
            for workflow, step in found.to_repeat:
                await self._retry(workflow, step)

    def _may_look(self) -> bool:
        """After a restore wait until whatever still ran has stopped by itself."""
        since = asyncio.get_running_loop().time() - self._control.restored_at
        return since > TIMINGS.lost_mutating_s

    async def revoke(self, folder: Path) -> bool:
        """Take the identity of the runner in a folder away; False if that was not possible."""
        try:
            runner = RunnerId(load_identity(folder).runner_id)
        except Problem:
            return False
        return await self._do("revoke", runners.revoke_runner, runner, "removed") is not None

    async def cancel_something(self) -> None:
        """Change one's mind about a job or a whole workflow."""
        if not self.ordered:
            return
        workflow = self._random.choice(self.ordered)
        found = await self._do("show", workflows.show_workflow, workflow)
        if found is None:
            return
        busy = [step for step in found.steps if step.job_id and step.state is StepState.ACTIVE]
        self._ledger.counts["cancels"] += 1
        if busy and self._random.random() < 0.7:
            step = self._random.choice(busy)
            await self._do("cancel job", jobs.cancel_job, JobId(str(step.job_id)))
        else:
            await self._do("cancel workflow", workflows.cancel_workflow, workflow)

    async def _order(self, wish: NewWorkflow) -> WorkflowId:
        """Order again and again until there is a server to take it."""
        while True:
            reply = await self._do("order", workflows.create_workflow, wish)
            if reply is not None:
                return WorkflowId(reply.id)
            await asyncio.sleep(5.0)

    async def _approve(self, workflow: str, step: str, digest: str) -> None:
        times = 2 if self._random.random() < self._mix.double_answers else 1
        answer = Approve(digest=digest)
        self._cloud.approved.setdefault(workflow, set()).add(digest)
        for _ in range(times):
            await self._do("approve", workflows.approve_step, workflow, step, answer)

    async def _retry(self, workflow: str, step: str) -> None:
        tries = self._retried.get((workflow, step), 0)
        if tries < self._mix.retries:
            reply = await self._do("retry", workflows.retry_step, workflow, step)
            self._retried[workflow, step] = tries + (reply is not None)

    def is_satisfied(self) -> bool:
        """Tell whether nothing runs, and nobody will do anything more about what ended badly."""
        found = self._control.read(find_waiting)
        return (
            len(self.ordered) == self.wanted
            and not found.running
            and not found.lanes
            and all(self._retried.get(one, 0) >= self._mix.retries for one in found.to_repeat)
        )

    async def _do(self, what: str, use_case: Any, *args: Any) -> Any:
        """Call a use case as this user; None where there is no server or it says no."""
        user = self.user
        outcome = await self._control.serve(what, lambda deps: use_case(deps, user, *args))
        if isinstance(outcome, Problem):
            self._ledger.trace(what, outcome.code)
            return None
        if what != "show":
            self._ledger.trace(what, "ok" if outcome is not None else "refused")
        return outcome


def draw_steps(random: Random) -> list[NewStep]:
    """Draw a workflow: changes, some of them in parallel, and often a plan and a gate before."""
    chosen = random.sample(_LANES, random.choice((1, 1, 2)))
    wanted: list[NewStep] = []
    first: list[str] = []
    if random.random() < 0.5:
        wanted += [job(f"plan-{i}", lanes=[lane]) for i, lane in enumerate(chosen)]
        wanted.append(gate("gate", *(step.name for step in wanted)))
        first.append("gate")
    wanted += [
        job(f"apply-{i}", *first, lanes=[lane], mutating=True) for i, lane in enumerate(chosen)
    ]
    if random.random() < 0.4:
        wanted.append(job("after", "apply-0", lanes=[random.choice(_LANES)], mutating=True))
    if random.random() < 0.3:
        wanted.append(job("check", *(f"apply-{i}" for i in range(len(chosen)))))
    return wanted
