"""The one moment of a transaction, on databases with and without a clock of their own."""

import time
from datetime import UTC, datetime, timedelta

from sqlalchemy import select

from exclave.storage.engine.database import Database, Tx
from exclave.storage.tables.identity import orgs

CLOSE = timedelta(seconds=2)


def tell_late(tx: Tx) -> datetime:
    """Ask for the time only when the answers of others have become too old."""
    tx.first(select(orgs.c.id))
    time.sleep(2.5)
    return tx.now


async def test_transactions_that_follow_each_other_tell_a_time_that_grows(db: Database) -> None:
    told = [await db.write(lambda tx: tx.now) for _ in range(50)]

    assert told == sorted(told)
    assert abs(told[-1] - datetime.now(UTC)) < CLOSE


async def test_a_transaction_that_asks_late_waits_for_an_answer(db: Database) -> None:
    await db.write(lambda tx: tx.now)

    for told in (await db.write(tell_late), await db.read(tell_late)):
        assert abs(told - datetime.now(UTC)) < timedelta(seconds=5)
