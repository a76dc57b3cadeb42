"""Whether a server is well: found out by a write, and not asked more often than it is worth."""

from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text

from exclave.base.errors import Unavailable
from exclave.control.access import authenticate_user
from exclave.control.deps import Deps
from exclave.control.health import KEPT_S, check_health, check_readiness
from exclave.control.limits.usage_counting import settle
from exclave.control.orgs import accounts
from exclave.storage.engine.database import Tx
from exclave.storage.engine.disk import Disk
from tests.integration.control.conftest import World
from tests.support.world import ManualClock, make_deps, make_org


async def stop_writes(deps: Deps, *, stopped: bool) -> None:
    """Let SQLite refuse writes, as it does on a full or read-only disk."""
    await deps.db.read(lambda tx: set_query_only(tx, stopped=stopped))


def set_query_only(tx: Tx, *, stopped: bool) -> None:
    tx.connection.execute(text(f"PRAGMA query_only={'ON' if stopped else 'OFF'}"))


async def test_health_fails_when_the_database_takes_no_writes() -> None:
    clock = ManualClock()
    deps = make_deps(clock)
    await check_health(deps)

    await stop_writes(deps, stopped=True)
    await check_health(deps)  # the last answer is kept for a moment
    clock.advance(KEPT_S)
    with pytest.raises(Unavailable):
        await check_health(deps)

    await stop_writes(deps, stopped=False)
    clock.advance(KEPT_S)
    await check_health(deps)


async def test_a_read_works_when_the_database_takes_no_writes() -> None:
    clock = ManualClock()
    deps = make_deps(clock)
    made = await deps.db.write(lambda tx: accounts.create_org(tx, deps, "acme", "founder"))

    await stop_writes(deps, stopped=True)
    user = await authenticate_user(deps, made.token)

    assert (await accounts.who_am_i(deps, user)).org.name == "acme"


async def test_a_server_that_stops_or_runs_out_of_disk_is_healthy_and_not_ready(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    deps = make_deps(clock)
    await check_readiness(deps)

    full = replace(deps, disk=Disk(tmp_path, clock, 1 << 60))
    with pytest.raises(Unavailable, match="nearly full"):
        await check_readiness(full)
    await check_health(full)

    deps.health.stopping = True
    with pytest.raises(Unavailable, match="shutting down"):
        await check_readiness(deps)
    await check_health(deps)


async def test_a_server_on_an_older_schema_is_not_well(world: World) -> None:
    def go_back(tx: Tx) -> None:
        tx.connection.execute(text("UPDATE alembic_version SET version_num = '0001'"))

    await world.deps.db.write(go_back)

    with pytest.raises(Unavailable, match="older schema"):
        await check_health(world.deps)


async def test_uses_of_tokens_are_written_together(world: World) -> None:
    other = await make_org(world.deps, "other")
    await settle(world.deps)

    for user in (world.user, other):
        listed = (await accounts.list_tokens(world.deps, user, "", 10)).items
        assert listed[0].last_used_at == world.clock.now()
