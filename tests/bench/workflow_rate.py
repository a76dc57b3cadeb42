"""Workflows per second: 20 steps each, every step answered by an outside event, all of it durable."""

import asyncio
import tempfile
from pathlib import Path

from sqlalchemy import select

from exclave.base.clock import SystemClock
from exclave.control import workflows
from exclave.control.deps import Deps
from exclave.domain.identity import User
from exclave.storage import tables
from exclave.wire.workflows import NewWorkflow, SendEvent, WorkflowState
from tests.bench.flows import NAMES, Rate, answer_all, list_needs, run_many
from tests.bench.report import say
from tests.world import make_deps, make_install, make_org, wait

SECONDS = 8.0
WARM_UP_S = 2.0
IN_FLIGHT = 100


def measure(url: str) -> Rate:
    """Run workflows on the use cases, without HTTP; tell how many ended per second."""
    return asyncio.run(_measure(url))


async def _measure(url: str) -> Rate:
    deps = make_deps(SystemClock(), url=url, inline=False)
    deps.hub.attach(asyncio.get_running_loop())
    try:
        user = await make_org(deps)
        queue = await make_install(deps, user)
        steps = [wait(name, *list_needs(name)) for name in NAMES]
        wish = NewWorkflow(name="bench", queue_id=queue, steps=steps)

        async def one() -> None:
            await _run_one(deps, user, wish)

        await run_many(one, in_flight=IN_FLIGHT, seconds=WARM_UP_S)
        rate = await run_many(one, in_flight=IN_FLIGHT, seconds=SECONDS)
        await _check_all_ended(deps)
        return rate
    finally:
        deps.db.close()


async def _run_one(deps: Deps, user: User, wish: NewWorkflow) -> None:
    made = await workflows.begin_workflow(deps, user, wish)
    event = SendEvent(outputs={"ok": True})
    await answer_all(lambda step: workflows.answer_wait(deps, user, made, step, event))


async def _check_all_ended(deps: Deps) -> None:
    states = await deps.db.read(lambda tx: tx.all(select(tables.workflows.c.state).distinct()))
    if [row.state for row in states] != [WorkflowState.SUCCEEDED]:
        raise RuntimeError(f"some workflows have not succeeded: {states}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        say(str(measure(f"sqlite:///{Path(folder) / 'bench.db'}")))
