"""Workflows per second: 20 steps each, every step answered by an outside event, all of it durable."""

import asyncio
import tempfile
from pathlib import Path

from exclave.base.clock import SystemClock
from exclave.control import workflows
from exclave.control.deps import Deps
from exclave.domain.identity import User
from exclave.wire.workflows import NewWorkflow, SendEvent, WorkflowState
from tests.bench.flows import NAMES, answer_all, list_needs, run_many
from tests.bench.report import say
from tests.world import make_deps, make_install, make_org, wait

SECONDS = 8.0
WARM_UP_S = 2.0
IN_FLIGHT = 100


def measure(url: str) -> float:
    """Run workflows on the use cases, without HTTP; tell how many ended per second."""
    return asyncio.run(_measure(url))


async def _measure(url: str) -> float:
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
        return await run_many(one, in_flight=IN_FLIGHT, seconds=SECONDS)
    finally:
        deps.db.close()


async def _run_one(deps: Deps, user: User, wish: NewWorkflow) -> None:
    made = await workflows.create_workflow(deps, user, wish)
    event = SendEvent(outputs={"ok": True})
    await answer_all(lambda step: workflows.answer_wait(deps, user, made.id, step, event))
    ended = await workflows.show_workflow(deps, user, made.id)
    if ended.state is not WorkflowState.SUCCEEDED:
        raise RuntimeError(f"workflow {made.id} is {ended.state}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        say(str(measure(f"sqlite:///{Path(folder) / 'bench.db'}")))
