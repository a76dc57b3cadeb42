"""A row that a transaction inserts and then changes is written once, as it is in the end."""

import asyncio
from functools import partial
from typing import Any

import pytest
from sqlalchemy import select

from exclave.base.errors import Conflict
from exclave.storage.engine.database import Database, Tx
from exclave.storage.engine.dialects.base import Session
from exclave.storage.engine.group_commit import Raced
from exclave.storage.tables.identity import orgs
from exclave.storage.tables.work import queues


def add(tx: Tx, *names: str) -> None:
    tx.insert_each(orgs, [{"id": n, "name": n, "created_at": tx.now} for n in names])


async def list_names(db: Database) -> dict[str, str]:
    rows = await db.read(lambda tx: tx.all(select(orgs.c.id, orgs.c.name).order_by(orgs.c.id)))
    return {row.id: row.name for row in rows}


class Spy:
    """Notes what a session is asked to write."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, session: type[Session]) -> None:
        self.seen: list[str] = []
        for name in ("insert_each", "update_each"):
            monkeypatch.setattr(session, name, self._watch(name, getattr(session, name)))

    def _watch(self, name: str, write: Any) -> Any:
        def watched(session: Session, table: Any, *rest: Any) -> None:
            self.seen.append(f"{name} {table.name} {len(rest[0])}")
            write(session, table, *rest)

        return watched


async def test_each_row_is_written_once(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    await db.write(lambda tx: add(tx, "old"))
    with db._writing.begin() as session:
        spy = Spy(monkeypatch, type(session))

    def change(tx: Tx) -> None:
        add(tx, "a", "b")
        tx.insert_each(queues, [{"org_id": "a", "id": "q", "kind": "install"}])
        tx.update_each(queues, [{"org_id": "a", "id": "q", "counter": 7}])
        tx.update_each(orgs, [{"id": "a", "name": "new"}])

    await db.write(change)

    assert spy.seen == ["insert_each orgs 2", "insert_each queues 1"]
    assert await list_names(db) == {"a": "new", "b": "b", "old": "old"}
    found = await db.read(lambda tx: tx.all(select(queues.c.counter)))
    assert [row.counter for row in found] == [7]


async def test_a_change_of_rows_old_and_new(db: Database) -> None:
    await db.write(lambda tx: add(tx, "old", "same"))

    def change(tx: Tx) -> None:
        add(tx, "fresh", "kept")
        tx.update_each(orgs, [{"id": n, "name": f"{n}!"} for n in ("old", "fresh")])
        tx.update_each(
            orgs, [{"id": n, "name": None} for n in ("same", "kept")], keep_if_none=("name",)
        )

    await db.write(change)

    assert await list_names(db) == {
        "fresh": "fresh!",
        "kept": "kept",
        "old": "old!",
        "same": "same",
    }


async def test_what_is_asked_sees_what_was_inserted_before(db: Database) -> None:
    def look(tx: Tx) -> list[str]:
        add(tx, "a")
        return [row.id for row in tx.all(select(orgs.c.id))]

    assert await db.write(look) == ["a"]


async def test_rows_of_one_that_failed_are_not_written(db: Database) -> None:
    def change(tx: Tx, name: str) -> None:
        add(tx, name)
        if name == "bad":
            raise Conflict("no")

    answers = await asyncio.gather(
        *[db.write(partial(change, name=n)) for n in ("a", "bad", "b")],
        return_exceptions=True,
    )

    assert [type(answer) for answer in answers] == [type(None), Conflict, type(None)]
    assert await list_names(db) == {"a": "a", "b": "b"}


@pytest.mark.parametrize("names", [("a", "a"), ("old",)])
async def test_the_same_key_twice_is_refused(db: Database, names: tuple[str, ...]) -> None:
    await db.write(lambda tx: add(tx, "old"))

    def add_each(tx: Tx) -> None:
        for name in names:
            add(tx, name)

    with pytest.raises(Raced):
        await db.write(add_each)

    assert await list_names(db) == {"old": "old"}
