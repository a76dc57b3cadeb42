"""Requests that share a commit are still all or nothing, each by itself."""

import asyncio
from collections.abc import Sequence
from functools import partial

import pytest
from sqlalchemy import event, insert, select

from exclave.base.clock import SystemClock
from exclave.base.errors import Conflict, Kind, Problem, Unavailable
from exclave.base.loop_time import LoopTime, Measured
from exclave.storage.engine.database import Database, Tx
from exclave.storage.engine.dialects import choose_dialect
from exclave.storage.engine.group_commit import MOST_OVERTAKING, Raced
from exclave.storage.engine.hub import Hub
from exclave.storage.tables.identity import orgs


def add(tx: Tx, name: str) -> str:
    tx.run(insert(orgs).values(id=f"org_{name}", name=name, created_at=tx.now))
    return name


async def names(db: Database) -> list[str]:
    return [row.name for row in await db.read(lambda tx: tx.all(select(orgs).order_by(orgs.c.id)))]


async def test_writes_that_arrive_together_share_commits(db: Database) -> None:
    commits: list[int] = []
    event.listen(db._write_engine, "commit", lambda _: commits.append(1))

    await asyncio.gather(*[db.write(partial(add, name=f"n{n:03d}")) for n in range(200)])

    assert len(await names(db)) == 200
    assert len(commits) < 100


async def test_short_writes_overtake_a_long_one_but_not_for_ever(db: Database) -> None:
    ended: list[str] = []

    async def write(name: str, *, is_long: bool = False) -> None:
        async def work() -> None:
            await db.write(partial(add, name=name))

        await Measured(work(), LoopTime(is_long=is_long))
        ended.append(name)

    async def keep_writing(name: str) -> None:
        for number in range(3 * MOST_OVERTAKING):
            await write(f"{name}{number:02d}")

    await asyncio.gather(
        write("first"), write("long", is_long=True), keep_writing("a"), keep_writing("b")
    )

    assert {"a00", "b00"} <= set(ended[: ended.index("long")])
    assert {"a23", "b23"} <= set(ended[ended.index("long") :])


async def test_callers_that_were_answered_go_on_before_a_long_write_runs(db: Database) -> None:
    order: list[str] = []

    async def write(name: str, *, is_long: bool = False) -> None:
        def run(tx: Tx) -> None:
            order.append(f"{name} runs")
            add(tx, name)

        async def work() -> None:
            await db.write(run)

        await Measured(work(), LoopTime(is_long=is_long))
        order.append(f"{name} answered")

    await asyncio.gather(write("short"), write("long", is_long=True))

    assert order == ["short runs", "short answered", "long runs", "long answered"]


async def test_one_that_fails_takes_nobody_with_it(db: Database) -> None:
    def fail(tx: Tx) -> None:
        add(tx, "half")
        raise Conflict("no")

    def break_(tx: Tx) -> None:
        add(tx, "good1")  # twice the same key: the database itself refuses

    answers = await asyncio.gather(
        *[db.write(partial(add, name=f"good{n}")) for n in range(5)],
        db.write(fail),
        db.write(break_),
        db.write(fail),
        return_exceptions=True,
    )

    assert await names(db) == [f"good{n}" for n in range(5)]
    assert [type(answer) for answer in answers[5:]] == [Conflict, Raced, Conflict]


async def test_one_whose_rows_are_refused_late_takes_nobody_with_it(db: Database) -> None:
    def add_row(tx: Tx, name: str) -> None:
        tx.insert_each(orgs, [{"id": f"org_{name}", "name": name, "created_at": tx.now}])

    await db.write(lambda tx: add_row(tx, "there"))
    wanted = ["a", "there", "b"]
    answers = await asyncio.gather(
        *[db.write(partial(add_row, name=n)) for n in wanted], return_exceptions=True
    )

    assert await names(db) == ["a", "b", "there"]
    assert [type(answer) for answer in answers] == [type(None), Raced, type(None)]


@pytest.mark.parametrize("others", [0, 3])
async def test_one_that_met_another_writer_looks_again(db: Database, others: int) -> None:
    """What it had read is out of date: the second time it sees the other's row, and says so."""
    await db.write(lambda tx: add(tx, "taken"))
    looks = 0

    def add_if_free(tx: Tx) -> None:
        nonlocal looks
        looks += 1
        if looks > 1:
            raise Conflict("there is one named `taken` already")
        add(tx, "taken")

    answers = await asyncio.gather(
        *[db.write(partial(add, name=f"good{n}")) for n in range(others)],
        db.write(add_if_free),
        return_exceptions=True,
    )

    assert type(answers[-1]) is Conflict
    assert await names(db) == [*[f"good{n}" for n in range(others)], "taken"]


async def test_one_that_clashes_every_time_may_be_sent_again(db: Database) -> None:
    await db.write(lambda tx: add(tx, "taken"))

    with pytest.raises(Raced) as raised:
        await db.write(lambda tx: add(tx, "taken"))

    assert raised.value.kind is Kind.UNAVAILABLE


async def test_deeds_are_done_for_what_was_committed_only(db: Database) -> None:
    done: list[str] = []

    def change(tx: Tx, name: str) -> None:
        add(tx, name)
        tx.when_committed(lambda: done.append(name))
        if name.startswith("bad"):
            raise Conflict("no")

    wanted = ["good1", "bad1", "good2", "bad2"]
    await asyncio.gather(
        *[db.write(partial(change, name=n)) for n in wanted], return_exceptions=True
    )
    await asyncio.gather(db.write(lambda tx: change(tx, "bad3")), return_exceptions=True)

    assert sorted(done) == await names(db) == ["good1", "good2"]


async def test_a_problem_that_is_returned_is_raised_after_the_commit(db: Database) -> None:
    def note_and_refuse(tx: Tx) -> Problem:
        add(tx, "noted")
        return Conflict("refused, but noted")

    with pytest.raises(Conflict):
        await db.write(note_and_refuse)

    assert await names(db) == ["noted"]


async def test_a_batch_handler_that_raises_is_run_again_one_by_one(db: Database) -> None:
    def handler(tx: Tx, commands: Sequence[str]) -> Sequence[str | Problem]:
        for command in commands:
            if command == "bad":
                raise RuntimeError("cannot digest this")
            add(tx, command)
        return list(commands)

    wanted = ["a", "b", "bad", "c"]
    answers = await asyncio.gather(
        *[db.write_each(handler, name) for name in wanted], return_exceptions=True
    )

    assert await names(db) == ["a", "b", "c"]
    assert [str(answer) for answer in answers] == ["a", "b", "cannot digest this", "c"]


async def test_wakes_are_sent_after_the_commit_and_not_for_what_failed(db: Database) -> None:
    def succeed(tx: Tx) -> None:
        add(tx, "one")
        tx.wake("good")

    def fail(tx: Tx) -> None:
        tx.wake("bad")
        raise Conflict("no")

    with db.hub.watch("good") as good, db.hub.watch("bad") as bad:
        await asyncio.gather(db.write(succeed), db.write(fail), return_exceptions=True)

        assert await good.wait(2)
        assert not await bad.wait(0.05)


async def test_reads_see_what_was_committed_before_them(db: Database) -> None:
    for n in range(20):
        await db.write(partial(add, name=f"n{n:02d}"))
        assert len(await names(db)) == n + 1


async def test_a_database_that_is_away_is_unavailable_not_a_bug() -> None:
    dialect = choose_dialect("postgresql+psycopg://nobody@127.0.0.1:1/none")
    away = Database(dialect, SystemClock(), Hub(), name="srv-1")

    with pytest.raises(Unavailable):
        await away.write(lambda tx: add(tx, "x"))

    await asyncio.to_thread(away.close)


async def test_a_patient_write_shares_the_next_commit_or_goes_alone_a_moment_later(
    db: Database,
) -> None:
    commits: list[int] = []
    event.listen(db._write_engine, "commit", lambda _: commits.append(1))

    await asyncio.gather(
        db.write(lambda tx: add(tx, "patient"), patient=True),
        db.write(lambda tx: add(tx, "urgent")),
    )
    together = len(commits)
    await db.write(lambda tx: add(tx, "single"), patient=True)

    assert await names(db) == ["patient", "single", "urgent"]
    assert together == 1
