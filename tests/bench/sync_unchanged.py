"""What a sync costs when nothing changed: the jobs that it makes, on a real control plane."""

import asyncio
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import func, select

from exclave.base.clock import SystemClock
from exclave.control.deps import Deps
from exclave.storage.engine.database import Tx
from exclave.storage.tables.work import jobs
from tests.bench.report import Measure
from tests.support.apps import make_app, sync
from tests.support.world import make_deps, make_org
from tests.unit.appconfig.large import write_large_app

SYNCS = 5


def measure() -> Iterator[Measure]:
    """Sync a large app once, then again and again without a change."""
    with tempfile.TemporaryDirectory() as folder:
        app = Path(folder) / "large"
        write_large_app(app)
        deps = make_deps(SystemClock(), url=f"sqlite:///{folder}/bench.db")
        try:
            first, again, took = asyncio.run(_run(deps, app))
        finally:
            deps.db.close()
    yield Measure(
        "sync_unchanged",
        again,
        "jobs",
        "0",
        met=again == 0 < first,
        baseline=first,
        detail={
            "baseline_is": "jobs made by the first sync",
            "syncs": SYNCS,
            "first_ms": round(took[0] * 1000),
            "unchanged_ms": round(took[1] * 1000),
        },
    )


async def _run(deps: Deps, app: Path) -> tuple[int, int, tuple[float, float]]:
    user = await make_org(deps)
    await make_app(deps, user, app.name)
    begun = time.perf_counter()
    await sync(deps, user, app)
    first, middle = await deps.db.read(_count), time.perf_counter()
    for _ in range(SYNCS):
        await sync(deps, user, app)
    ended = time.perf_counter()
    again = await deps.db.read(_count) - first
    return first, again, (middle - begun, (ended - middle) / SYNCS)


def _count(tx: Tx) -> int:
    return int(tx.run(select(func.count()).select_from(jobs)).scalar_one())
