"""A connection to SQLite, used without ceremony: statements take microseconds, so must we."""

import sqlite3
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, TypeVar

from pydantic_core import from_json
from sqlalchemy import Connection, Table
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import RootTransaction
from sqlalchemy.sql.type_api import TypeEngine

from exclave.storage.engine.dialects.bulk import (
    Rows,
    find_converters,
    list_defaults,
    list_keys,
    quote_all,
    write_assignment,
)
from exclave.storage.engine.dialects.failures import translate
from exclave.storage.engine.greenlets import call_beside
from exclave.storage.engine.statements import Convert, Deferred, Prepared, Values
from exclave.storage.engine.types import write_json

R = TypeVar("R")

_WORDS = sqlite.dialect(paramstyle="qmark", json_serializer=write_json, json_deserializer=from_json)
"""How statements are written for SQLite; one for all, so that each is compiled once."""


class SqliteSession:
    """One connection; a writer's transactions are SQLAlchemy's too, whose events tell of them."""

    lost = False

    def __init__(self, connection: Connection, *, writes: bool) -> None:
        self.connection = connection
        self._writes = writes
        raw = connection.connection.driver_connection
        assert isinstance(raw, sqlite3.Connection)  # noqa: S101 - the only driver we use
        self._raw = raw
        self._transaction: RootTransaction | None = None
        self._committer = ThreadPoolExecutor(1, "committer") if writes else None

    def begin(self, *, alone: bool = False) -> None:
        """Begin."""
        try:
            if self._writes:
                self._transaction = self.connection.begin()
            elif not alone:
                self._raw.execute("BEGIN")
        except sqlite3.Error as error:
            raise translate(error, sqlite3.Error, "BEGIN") from error

    def read_clock(self) -> None:
        """Return None: the process that owns the file has the only clock."""

    def commit(self) -> None:
        """Commit to disk, beside the loop: it is the only thing here that takes long."""
        if self._transaction is not None:
            call_beside(self._committer, self._transaction.commit)
            self._transaction = None

    def rollback(self) -> None:
        """Undo the transaction, also one whose commit was refused."""
        if self._transaction is not None:
            self._transaction.close()
            self._transaction = None
        if self.connection.in_transaction():
            self.connection.rollback()
        if self._raw.in_transaction:
            self._raw.rollback()

    def savepoint(self) -> None:
        """Set the savepoint."""
        self._run("SAVEPOINT mark")

    def release(self) -> None:
        """Release the savepoint."""
        self._run("RELEASE mark")

    def rollback_to_savepoint(self) -> None:
        """Undo what happened since the savepoint."""
        self._run("ROLLBACK TO mark")
        self._run("RELEASE mark")

    def fetch(self, statement: Prepared[R], values: Values) -> list[R]:
        """Run a statement and return its rows."""
        compiled = statement.compile(_WORDS, _find_reader, values)
        return compiled.read(self._run(compiled.sql, compiled.bind(values)).fetchall())

    def select_later(self, statement: Prepared[R], values: Values) -> Deferred[R]:
        """Run a query at once; the returned function has its rows."""
        rows = self.fetch(statement, values)
        return lambda: rows

    def execute_later(self, statement: Prepared[Any], values: Values) -> None:
        """Run a statement."""
        compiled = statement.compile(_WORDS, _find_reader, values)
        self._run(compiled.sql, compiled.bind(values))

    def count(self, statement: Prepared[Any], values: Values) -> int:
        """Run a statement and return how many rows it changed."""
        compiled = statement.compile(_WORDS, _find_reader, values)
        return self._run(compiled.sql, compiled.bind(values)).rowcount

    def insert_each(self, table: Table, rows: Rows) -> None:
        """Insert many rows by one prepared statement."""
        defaults = list_defaults(table)
        names = (*rows[0], *(name for name in defaults if name not in rows[0]))
        self._run_each(_write_insert(table, names), table, names, [{**defaults, **r} for r in rows])

    def update_each(self, table: Table, rows: Rows, keep_if_none: tuple[str, ...]) -> None:
        """Update many rows by one prepared statement."""
        keys = list_keys(table)
        changed = tuple(name for name in rows[0] if name not in keys)
        self._run_each(_write_update(table, changed, keep_if_none), table, (*changed, *keys), rows)

    def announce(self, sender: str, keys: Sequence[str]) -> None:
        """Do nothing: no other server shares the file."""

    def close(self) -> None:
        """Close the connection."""
        if self._committer is not None:
            self._committer.shutdown()
        self.connection.close()

    def _run(self, sql: str, bound: Sequence[Any] = ()) -> sqlite3.Cursor:
        try:
            return self._raw.execute(sql, bound)
        except sqlite3.Error as error:
            raise translate(error, sqlite3.Error, sql) from error

    def _run_each(self, sql: str, table: Table, names: tuple[str, ...], rows: Rows) -> None:
        converters = find_converters(table, names, _WORDS)
        columns = ([row[name] for row in rows] for name in names)
        bound = list(
            zip(
                *(
                    _convert_all(values, converters[name]) if name in converters else values
                    for name, values in zip(names, columns, strict=True)
                ),
                strict=True,
            )
        )
        if len(bound) == 1:
            self._run(sql, bound[0])
            return
        try:
            self._raw.executemany(sql, bound)
        except sqlite3.Error as error:
            raise translate(error, sqlite3.Error, sql) from error


def _find_reader(kind: TypeEngine[Any]) -> Convert | None:
    return kind.dialect_impl(_WORDS).result_processor(_WORDS, None)


def _convert_all(values: Sequence[Any], convert: Convert) -> list[Any]:
    """Convert the values of a column; rows that share a value have it converted once."""
    converted = []
    last, result = values[0], convert(values[0])
    for value in values:
        if value is not last:
            last, result = value, convert(value)
        converted.append(result)
    return converted


@lru_cache
def _write_insert(table: Table, names: tuple[str, ...]) -> str:
    columns = ", ".join(quote_all(names, _WORDS))
    placeholders = ", ".join("?" * len(names))
    return f"INSERT INTO {table.name} ({columns}) VALUES ({placeholders})"  # noqa: S608 - our own names


@lru_cache
def _write_update(table: Table, names: tuple[str, ...], keep_if_none: tuple[str, ...]) -> str:
    changes = ", ".join(
        write_assignment(column, "?", column, keep_if_none=name in keep_if_none)
        for name, column in zip(names, quote_all(names, _WORDS), strict=True)
    )
    condition = " AND ".join(f"{column} = ?" for column in quote_all(list_keys(table), _WORDS))
    return f"UPDATE {table.name} SET {changes} WHERE {condition}"  # noqa: S608 - our own names
