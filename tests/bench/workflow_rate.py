"""Workflows per second: 20 steps each, every step answered by an outside event, all of it durable."""

import asyncio
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from sqlalchemy import select

from exclave.base.clock import SystemClock
from exclave.control.deps import Deps
from exclave.control.workflows import workflows
from exclave.domain.identity import User
from exclave.storage.tables import work
from exclave.wire.workflows import NewWorkflow, SendEvent, WorkflowState
from tests.bench import temporal_rate
from tests.bench.flows import NAMES, Rate, answer_all, list_needs, run_many
from tests.bench.report import Measure, say
from tests.support.postgres import start_postgres
from tests.support.world import make_deps, make_install, make_org, wait

SECONDS = 8.0
WARM_UP_S = 2.0
IN_FLIGHT = 100
GOAL_RATIO = 12.0


def measure_sqlite() -> Iterator[Measure]:
    """Measure on a SQLite file, each commit synced to disk."""
    with tempfile.TemporaryDirectory() as folder:
        rate = measure(f"sqlite:///{Path(folder) / 'bench.db'}")
    yield _judge("workflow_rate_sqlite", rate, goal=150.0)


def measure_postgres() -> Iterator[Measure]:
    """Measure on PostgreSQL with fsync on."""
    with tempfile.TemporaryDirectory() as folder:
        server = start_postgres(Path(folder))
        try:
            rate = measure(server.create_database("bench"))
        finally:
            server.stop()
    yield _judge("workflow_rate_postgres", rate, goal=100.0)


def measure(url: str) -> Rate:
    """Run workflows on the use cases, without HTTP."""
    return asyncio.run(_measure(url))


def _judge(name: str, rate: Rate, *, goal: float) -> Measure:
    baseline = _measure_temporal()
    ratio = None if baseline is None else rate.per_second / baseline
    detail: dict[str, object] = {
        "steps": len(NAMES),
        "in_flight": IN_FLIGHT,
        "seconds": SECONDS,
        "cpu_ms_per_workflow": round(rate.cpu_ms, 2),
        "baseline_is": "Temporal dev server on a SQLite file, same graph, one signal per step",
    }
    if baseline is None:
        detail["baseline_missing"] = (
            "Temporal is not installed: pip install -r requirements/bench.lock"
        )
    return Measure(
        name,
        rate.per_second,
        "workflows/s",
        f">= {goal:g} and >= {GOAL_RATIO:g}x the baseline",
        met=rate.per_second >= goal and ratio is not None and ratio >= GOAL_RATIO,
        baseline=baseline,
        ratio=ratio,
        detail=detail,
    )


@cache
def _measure_temporal() -> float | None:
    """Measure the baseline once per run."""
    program = temporal_rate.find_program()
    if program is None:
        return None
    say("  baseline: the same on Temporal's dev server")
    return temporal_rate.measure(program).per_second


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
    states = await deps.db.read(lambda tx: tx.all(select(work.workflows.c.state).distinct()))
    if [row.state for row in states] != [WorkflowState.SUCCEEDED]:
        raise RuntimeError(f"some workflows have not succeeded: {states}")
