"""PostgreSQL: row locks and NOTIFY make it the engine that several servers share."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

from sqlalchemy import (
    Connection,
    Engine,
    Insert,
    Table,
    bindparam,
    create_engine,
    func,
    make_url,
    select,
)
from sqlalchemy.dialects.postgresql import insert

CHANNEL = "exclave"
_PAYLOAD = 7000
"""Bytes of one notification; PostgreSQL takes less than 8,000."""
_SESSION = (
    "-c lock_timeout=2000 -c statement_timeout=15000 -c idle_in_transaction_session_timeout=30000"
)


class PostgresDialect:
    """The database for replicas."""

    writers: ClassVar = 2
    crosses_processes: ClassVar = True

    def __init__(self, url: str) -> None:
        self.url = url

    def open_writer(self) -> Engine:
        """Make the engine of the writers."""
        return self._open("READ COMMITTED", pool=self.writers)

    def open_reader(self) -> Engine:
        """Make the engine of the readers; each transaction sees one snapshot."""
        return self._open("REPEATABLE READ", pool=8)

    def insert_missing(self, table: Table) -> Insert:
        """Make an insert that leaves rows alone which exist already."""
        return insert(table).on_conflict_do_nothing()

    def read_clock(self, connection: Connection) -> datetime | None:
        """Tell the database's time, so that no decision compares two servers' clocks."""
        now = connection.execute(select(func.clock_timestamp())).scalar_one()
        return datetime.fromtimestamp(now.timestamp(), UTC)

    def announce(self, connection: Connection, sender: str, keys: Sequence[str]) -> None:
        """Send the keys to every listening server at commit."""
        statement = select(func.pg_notify(CHANNEL, bindparam("payload")))
        for payload in _cut_payloads(sender, keys):
            connection.execute(statement, {"payload": payload})

    def describe(self) -> dict[str, Any]:
        """Say which database this is, without the password."""
        return {"database": "postgresql", "url": make_url(self.url).render_as_string()}

    def _open(self, isolation: str, *, pool: int) -> Engine:
        return create_engine(
            self.url,
            isolation_level=isolation,
            pool_size=pool,
            max_overflow=0,
            pool_pre_ping=False,
            connect_args={"options": _SESSION, "connect_timeout": 5},
        )


def _cut_payloads(sender: str, keys: Sequence[str]) -> list[str]:
    payloads: list[str] = []
    part: list[str] = []
    size = 0
    for key in keys:
        if part and size + len(key) > _PAYLOAD:
            payloads.append(json.dumps([sender, *part]))
            part, size = [], 0
        part.append(key)
        size += len(key) + 4
    return [*payloads, json.dumps([sender, *part])] if part else payloads
