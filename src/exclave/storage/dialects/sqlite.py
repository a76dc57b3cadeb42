"""SQLite: one file, one writer, readers on snapshots (WAL), every commit on disk."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, ClassVar

from sqlalchemy import Connection, Engine, Insert, Table, create_engine, event
from sqlalchemy import Dialect as Driver
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.pool import StaticPool

from exclave.storage.dialects.bulk import (
    Rows,
    find_converters,
    list_defaults,
    list_keys,
    quote_all,
    write_assignment,
)

_PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA foreign_keys=ON",
    "PRAGMA busy_timeout=10000",
    "PRAGMA temp_store=MEMORY",
    "PRAGMA cache_size=-65536",
    "PRAGMA wal_autocheckpoint=4000",
)


class SqliteDialect:
    """The embedded default."""

    writers: ClassVar = 0
    crosses_processes: ClassVar = False

    def __init__(self, url: str) -> None:
        self.url = url
        self._in_memory = ":memory:" in url
        self._shared: Engine | None = None

    def open_writer(self) -> Engine:
        """Make the engine of the one writer; a transaction takes the write lock at its start."""
        return self._open("BEGIN IMMEDIATE")

    def open_reader(self) -> Engine:
        """Make the engine of the readers; a database in memory has only its one connection."""
        return self._open("BEGIN")

    def insert_missing(self, table: Table) -> Insert:
        """Make an insert that leaves rows alone which exist already."""
        return insert(table).on_conflict_do_nothing()

    def insert_each(self, connection: Connection, table: Table, rows: Rows) -> None:
        """Insert many rows by one prepared statement."""
        names = (*rows[0], *(name for name in list_defaults(table) if name not in rows[0]))
        defaults = list_defaults(table)
        full = [{**defaults, **row} for row in rows]
        _run_each(connection, _write_insert(table, names, connection.dialect), table, names, full)

    def update_each(
        self, connection: Connection, table: Table, rows: Rows, kept: tuple[str, ...]
    ) -> None:
        """Update many rows by one prepared statement."""
        keys = list_keys(table)
        changed = tuple(name for name in rows[0] if name not in keys)
        statement = _write_update(table, changed, kept, connection.dialect)
        _run_each(connection, statement, table, (*changed, *keys), rows)

    def read_clock(self, connection: Connection) -> datetime | None:
        """Tell nothing: the process that owns the file has the only clock."""
        del connection
        return None

    def announce(self, connection: Connection, sender: str, keys: Sequence[str]) -> None:
        """Do nothing: no other server shares the file."""

    def describe(self) -> dict[str, Any]:
        """Say which database this is."""
        return {"database": "sqlite", "file": self.url.removeprefix("sqlite:///")}

    def _open(self, begin: str) -> Engine:
        if self._in_memory:
            if self._shared is None:
                options = {"poolclass": StaticPool, "connect_args": {"check_same_thread": False}}
                self._shared = _prepare(create_engine(self.url, **options), "BEGIN")
            return self._shared
        return _prepare(create_engine(self.url, connect_args={"check_same_thread": False}), begin)


def _prepare(engine: Engine, begin: str) -> Engine:
    def set_up(connection: Any, record: object) -> None:
        del record
        connection.isolation_level = None  # SQLAlchemy says BEGIN, not the driver
        for pragma in _PRAGMAS:
            connection.execute(pragma).close()

    def say_begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    event.listen(engine, "connect", set_up)
    event.listen(engine, "begin", say_begin)
    return engine


def _run_each(
    connection: Connection, statement: str, table: Table, names: tuple[str, ...], rows: Rows
) -> None:
    converters = find_converters(table, names, connection.dialect)
    places = [(names.index(name), convert) for name, convert in converters.items()]
    connection.exec_driver_sql(statement, [_pick(row, names, places) for row in rows])


def _pick(
    row: Mapping[str, Any], names: tuple[str, ...], places: list[tuple[int, Callable[[Any], Any]]]
) -> tuple[Any, ...]:
    values = [row[name] for name in names]
    for place, convert in places:
        values[place] = convert(values[place])
    return tuple(values)


@lru_cache
def _write_insert(table: Table, names: tuple[str, ...], driver: Driver) -> str:
    columns = ", ".join(quote_all(names, driver))
    places = ", ".join("?" * len(names))
    return f"INSERT INTO {table.name} ({columns}) VALUES ({places})"  # noqa: S608 - our own names


@lru_cache
def _write_update(
    table: Table, names: tuple[str, ...], kept: tuple[str, ...], driver: Driver
) -> str:
    changes = ", ".join(
        write_assignment(column, "?", column, kept=name in kept)
        for name, column in zip(names, quote_all(names, driver), strict=True)
    )
    found = " AND ".join(f"{column} = ?" for column in quote_all(list_keys(table), driver))
    return f"UPDATE {table.name} SET {changes} WHERE {found}"  # noqa: S608 - our own names
