"""PostgreSQL: row locks and NOTIFY make it the engine that several servers share."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
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
from sqlalchemy import Dialect as Driver
from sqlalchemy.dialects.postgresql import insert

from exclave.storage.dialects.bulk import (
    Rows,
    find_converters,
    list_defaults,
    list_keys,
    quote_all,
    write_assignment,
)

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

    def insert_each(self, connection: Connection, table: Table, rows: Rows) -> None:
        """Insert many rows as one set."""
        defaults = list_defaults(table)
        names = (*rows[0], *(name for name in defaults if name not in rows[0]))
        full = [{**defaults, **row} for row in rows]
        _run_set(connection, _write_insert(table, names, connection.dialect), table, names, full)

    def update_each(
        self, connection: Connection, table: Table, rows: Rows, kept: tuple[str, ...]
    ) -> None:
        """Update many rows as one set."""
        names = tuple(rows[0])
        statement = _write_update(table, names, kept, connection.dialect)
        _run_set(connection, statement, table, names, rows)

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


def _run_set(
    connection: Connection, statement: str, table: Table, names: tuple[str, ...], rows: Rows
) -> None:
    converters = find_converters(table, names, connection.dialect, keep_json=True)
    plain = [
        {**row, **{name: convert(row[name]) for name, convert in converters.items()}}
        for row in rows
    ]
    connection.exec_driver_sql(statement, (json.dumps(plain),))


@lru_cache
def _write_insert(table: Table, names: tuple[str, ...], driver: Driver) -> str:
    columns = ", ".join(quote_all(names, driver))
    rows = _write_rows(table, names, driver)
    return f"INSERT INTO {table.name} ({columns}) SELECT {columns} FROM {rows}"  # noqa: S608 - our own names


@lru_cache
def _write_update(
    table: Table, names: tuple[str, ...], kept: tuple[str, ...], driver: Driver
) -> str:
    keys = list_keys(table)
    changes = ", ".join(
        write_assignment(column, f"new.{column}", f"{table.name}.{column}", kept=name in kept)
        for name, column in zip(names, quote_all(names, driver), strict=True)
        if name not in keys
    )
    found = " AND ".join(f"{table.name}.{key} = new.{key}" for key in quote_all(keys, driver))
    rows = _write_rows(table, names, driver)
    return f"UPDATE {table.name} SET {changes} FROM {rows} WHERE {found}"  # noqa: S608 - our own names


def _write_rows(table: Table, names: tuple[str, ...], driver: Driver) -> str:
    """Write the rows as one document: the driver is slow at arrays and at many parameters."""
    columns = zip(names, quote_all(names, driver), strict=True)
    typed = ", ".join(f"{column} {table.c[name].type.compile(driver)}" for name, column in columns)
    return f"json_to_recordset(%s::json) AS new ({typed})"
