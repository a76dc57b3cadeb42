"""Prepared statements answer what SQLAlchemy would, on both databases."""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest
from sqlalchemy import (
    Column,
    MetaData,
    Table,
    Text,
    bindparam,
    insert,
    make_url,
    select,
    text,
    update,
)

from exclave.base.clock import SystemClock
from exclave.domain.identity import OrgId, QueueId, RunnerId
from exclave.domain.jobs import Silence
from exclave.storage import executions, jobs
from exclave.storage.engine.database import Database, Tx
from exclave.storage.engine.dialects import choose_dialect
from exclave.storage.engine.dialects.sqlite_session import SqliteSession
from exclave.storage.engine.hub import Hub
from exclave.storage.engine.statements import Prepared
from exclave.storage.engine.types import EnumText, JsonAs
from exclave.storage.migrate import upgrade
from exclave.storage.tables.identity import orgs
from exclave.storage.tables.runners import runners
from exclave.storage.tables.work import queues

AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
RUNNER = {
    "org_id": "org_1", "id": "run_1", "queue_id": "q_1", "kind": "install", "name": "it's",
    "state": "active", "public_key": "k", "generation": 1, "generation_used": True,
    "version": "ü", "protocol": "1.1", "capabilities": ["noop"], "stats": {"load": 0.5},
    "seen_at": AT, "created_at": AT,
}  # fmt: skip
_MINE = (runners.c.org_id == bindparam("org"), runners.c.id == bindparam("runner"))


@pytest.fixture
async def db(db: Database) -> Database:
    await db.write(_fill)
    return db


def _fill(tx: Tx) -> None:
    tx.insert_each(orgs, [{"id": "org_1", "name": "one", "created_at": AT}])
    tx.insert_each(queues, [{"org_id": "org_1", "id": "q_1", "kind": "install"}])
    tx.insert_each(runners, [RUNNER, {**RUNNER, "id": "run_2"}, {**RUNNER, "id": "run_3"}])


async def test_a_row_has_the_same_values_as_by_sqlalchemy(db: Database) -> None:
    query = select(runners).where(*_MINE)
    prepared = Prepared(query)
    wanted = {"org": "org_1", "runner": "run_1"}

    fast = await db.read(lambda tx: tx.one(prepared, **wanted))
    slow = await db.read(lambda tx: tx.first(query, **wanted))

    assert slow is not None
    assert fast._asdict() == slow._asdict()
    assert (fast.seen_at, fast.due_at, fast.stats) == (AT, None, {"load": 0.5})


class _Short(NamedTuple):
    id: str
    seen_at: datetime


@dataclass(frozen=True, slots=True)
class _ShortToo:
    id: str
    seen_at: datetime


@pytest.mark.parametrize("row", [_Short, _ShortToo])
async def test_rows_are_read_as_the_named_type(
    db: Database, row: type[_Short] | type[_ShortToo]
) -> None:
    query = select(runners.c.id, runners.c.seen_at).where(*_MINE)
    wanted = {"org": "org_1", "runner": "run_1"}

    prepared = await db.read(lambda tx: tx.all(Prepared(query, row), **wanted))
    plain = await db.read(lambda tx: tx.all(query, row, **wanted))
    first = await db.read(lambda tx: tx.first(query, row, **wanted))

    assert [*prepared] == [*plain] == [first] == [row("run_1", AT)]


def test_a_row_type_has_exactly_the_columns_of_its_query() -> None:
    with pytest.raises(TypeError, match="has the fields"):
        Prepared(select(runners.c.seen_at, runners.c.id), _Short)
    with pytest.raises(TypeError, match="neither a NamedTuple nor a dataclass"):
        Prepared(select(runners.c.id), str)


class _Colour(StrEnum):
    RED = "red"


_paints = Table("paints", MetaData(), Column("id", Text), Column("colour", EnumText(_Colour)))


async def test_an_enum_column_is_read_as_a_member(db: Database) -> None:
    def paint(tx: Tx) -> list[object]:
        _paints.create(tx.connection)
        tx.run(insert(_paints), [{"id": "a", "colour": _Colour.RED}, {"id": "b", "colour": None}])
        query = select(_paints.c.colour).order_by(_paints.c.id)
        literal = Prepared(query.where(_paints.c.colour == _Colour.RED))
        rows = [*tx.all(query), *tx.all(Prepared(query)), *tx.all(literal)]
        _paints.drop(tx.connection)
        return [row.colour for row in rows]

    read = await db.write(paint)

    assert read == [_Colour.RED, None, _Colour.RED, None, _Colour.RED]
    assert all(isinstance(colour, _Colour) for colour in read if colour)


_boxes = Table("boxes", MetaData(), Column("id", Text), Column("sizes", JsonAs(tuple)))


async def test_a_json_column_is_read_by_its_function(db: Database) -> None:
    def pack(tx: Tx) -> list[object]:
        _boxes.create(tx.connection)
        tx.run(insert(_boxes), [{"id": "a", "sizes": [1, 2]}, {"id": "b", "sizes": None}])
        tx.insert_each(_boxes, [{"id": "c", "sizes": [3]}])
        query = select(_boxes.c.sizes).order_by(_boxes.c.id)
        rows = [*tx.all(query), *tx.all(Prepared(query))]
        _boxes.drop(tx.connection)
        return [row.sizes for row in rows]

    assert await db.write(pack) == [(1, 2), None, (3,)] * 2


async def test_a_text_that_is_no_member_of_the_enum_is_refused(db: Database) -> None:
    def paint(tx: Tx) -> None:
        _paints.create(tx.connection)
        tx.run(insert(_paints), {"id": "a", "colour": "blue"})
        tx.all(Prepared(select(_paints.c.colour)))

    with pytest.raises(ValueError, match="`blue` is no _Colour"):
        await db.write(paint)


@pytest.mark.parametrize("count", [0, 1, 2, 3])
async def test_a_list_may_have_any_length(db: Database, count: int) -> None:
    among = runners.c.id.in_(bindparam("wanted", expanding=True))
    prepared = Prepared(select(runners.c.id).where(runners.c.org_id == "org_1", among))
    wanted = [f"run_{number + 1}" for number in range(count)]

    rows = await db.read(lambda tx: tx.all(prepared, wanted=wanted))

    assert sorted(row.id for row in rows) == wanted


async def test_changes_are_counted_and_may_answer_with_rows(db: Database) -> None:
    change = update(runners).where(*_MINE).values(stats=bindparam("new"), cause=bindparam("why"))
    counted, returning = Prepared(change), Prepared(change.returning(runners.c.stats))
    values = {"org": "org_1", "new": {"a": [1]}, "why": "'; --"}

    hit = await db.write(lambda tx: tx.count(counted, **values, runner="run_1"))
    missed = await db.write(lambda tx: tx.count(counted, **values, runner="run_9"))
    row = await db.write(lambda tx: tx.one(returning, **values, runner="run_2"))

    assert (hit, missed, row.stats) == (1, 0, {"a": [1]})


@pytest.mark.parametrize("url", ["postgres"], indirect=True)  # a file does not hang up
async def test_a_database_that_hung_up_is_called_again(db: Database) -> None:
    await db.read(lambda tx: tx.all(Prepared(select(orgs.c.id))))

    _throw_out_all(db.dialect.url)  # type: ignore[attr-defined]

    await db.write(lambda tx: tx.count(Prepared(update(orgs).values(name="two"))))
    assert (await db.read(lambda tx: tx.one(Prepared(select(orgs.c.name))))).name == "two"


def _throw_out_all(url: str) -> None:
    address = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


async def test_what_every_poll_asks_reads_only_open_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A history of a million jobs must not make an idle poll slow: partial indexes are used."""
    url = f"sqlite:///{tmp_path / 'test.db'}"
    upgrade(url)
    db = Database(choose_dialect(url), SystemClock(), Hub(), name="srv-1", inline=True)
    plans: list[str] = []
    run = SqliteSession._run

    def explain(self: SqliteSession, sql: str, bound: tuple[object, ...] = ()) -> object:
        driver = self.connection.connection.driver_connection
        assert driver is not None
        found = driver.execute(f"EXPLAIN QUERY PLAN {sql}", bound)
        plans.append(" ".join(row[3] for row in found))
        return run(self, sql, bound)

    monkeypatch.setattr(SqliteSession, "_run", explain)
    org = OrgId("org_1")

    await db.read(lambda tx: jobs.ask_waiting(tx, org, QueueId("q_1"))())
    await db.read(lambda tx: jobs.ask_queued(tx, org, QueueId("q_1"), ["a"], skip=0, limit=1)())
    await db.read(lambda tx: executions.list_open(tx, org, RunnerId("run_1")))
    await db.read(lambda tx: executions.list_silent(tx, Silence(AT, AT), mutating=True))

    db.close()
    assert ["jobs_queued" in plan for plan in plans[:2]] == [True, True], plans
    assert ["executions_open" in plan for plan in plans[2:]] == [True, True], plans


async def test_reads_see_one_snapshot(db: Database) -> None:
    def look_twice(tx: Tx) -> tuple[int, int]:
        first = len(tx.all(select(orgs)))
        if db.dialect.crosses_processes:
            tx.session.connection.execute(text("SELECT 1"))
        return first, len(tx.all(Prepared(select(orgs))))

    assert await db.read(look_twice) == (1, 1)


@pytest.mark.parametrize(
    "document",
    [
        {}, [], {"a": [1, 2.5, 1.5e10, -(10**20), True, None, "ü\u2028\x7f"]}, {"": {"": ""}},
        {"quote": '"\\\n\t'}, {"deep": [[[[{"x": 1}]]]]},
    ],
)  # fmt: skip
async def test_documents_come_back_as_they_were(db: Database, document: object) -> None:
    row = {**RUNNER, "id": "run_9", "stats": document}
    await db.write(lambda tx: tx.insert_each(runners, [row]))
    mine = Prepared(select(runners.c.stats).where(*_MINE))

    found = await db.read(lambda tx: tx.one(mine, org="org_1", runner="run_9"))
    plain = await db.read(
        lambda tx: tx.first(select(runners.c.stats).where(runners.c.id == "run_9"))
    )

    assert found.stats == document
    assert plain is not None
    assert plain.stats == document
