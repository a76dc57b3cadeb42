"""A PostgreSQL session over libpq.

Every statement is prepared by name when a connection first runs it; values and rows are sent as
text.
"""

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, TypeVar

import psycopg
from psycopg import pq
from pydantic_core import from_json
from sqlalchemy import JSON, Connection, Dialect, Table
from sqlalchemy.dialects.postgresql.base import PGDialect
from sqlalchemy.engine import RootTransaction
from sqlalchemy.exc import DBAPIError
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
from exclave.storage.engine.dialects.postgres_clock import ServerClock
from exclave.storage.engine.dialects.postgres_connection import Keep, Pipeline
from exclave.storage.engine.statements import (
    Compiled,
    Convert,
    Deferred,
    Prepared,
    Values,
    name_statement,
)
from exclave.storage.engine.types import write_json

R = TypeVar("R")

CHANNEL = "exclave"
_PAYLOAD = 7000
"""Bytes of one notification; PostgreSQL takes less than 8,000."""
_NOTIFY = name_statement(), f"SELECT pg_notify('{CHANNEL}', $1)"
_CLOCK = name_statement(), "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
_BEGIN_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED"
_BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_PLAN_FREELY = "SELECT " + ", ".join(
    f"set_config('enable_{way}', 'on', true)" for way in ("seqscan", "hashjoin", "mergejoin")
)
"""For a transaction that lists and searches; what is written is found by its key."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WORDS: Dialect = PGDialect(  # type: ignore[no-untyped-call]
    paramstyle="numeric_dollar", json_serializer=write_json, json_deserializer=from_json
)
"""How statements are written for libpq; one for all, so that each is compiled once."""
_FROM_TEXT: dict[type, Callable[[bytes], Any]] = {
    int: int,
    str: bytes.decode,
    bool: b"t".__eq__,
}


class PostgresSession:
    """One connection over libpq in pipeline mode; begins and ends its transactions itself.

    Why this exists: a round trip costs more than most statements, and so does the driver.
    SQLAlchemy with psycopg takes 290 us of CPU time per statement, libpq with a prepared statement
    20 (docs/internals/group-commit.md). In a pipeline, statements whose result nobody reads (BEGIN,
    inserts, updates, NOTIFY) cost no round trip at all: they are sent with the next statement whose
    result is read. `tests/integration/control/test_statements.py` counts the exchanges of each use
    case. Without it every statement waits for its answer.

    The price: an error of statement N is raised at statement N + k, the first one after it that
    waits. Everything in between was sent, and skipped by the server. For example:

        session.insert_each(apps, rows)        # sent; violates a unique key
        session.execute_later(touch_org, ...)  # sent; skipped by the server
        session.fetch(list_apps, ...)          # waits: raises IntegrityError of the INSERT

    The error names the SQL of the statement that failed, not of the one that raised. `release` and
    `commit` always wait, so no error leaves its savepoint or its transaction; group commit relies
    on that (tests/integration/storage/engine/test_group_commit.py). To handle an error where it
    happens, use `fetch` or `count`, which wait. Statements run in the order in which they were
    sent, so a lock that is sent first protects what is sent after it.
    """

    def __init__(self, connection: Connection, clock: ServerClock, *, writes: bool) -> None:
        self._driver = connection.execution_options(isolation_level="AUTOCOMMIT")
        raw = connection.connection.driver_connection
        assert isinstance(raw, psycopg.Connection)  # noqa: S101 - the only driver we use
        self._pq = raw.pgconn
        self._line = Pipeline(self._pq)
        self._clock = clock
        self._writes = writes
        self._open = False
        self._micros: int | None = None
        self._asked = False
        self._transaction: RootTransaction | None = None

    @property
    def connection(self) -> Connection:
        """The SQLAlchemy connection, in the same transaction."""
        if self._transaction is None and self._open:
            if not self._writes:
                self._line.say(_PLAN_FREELY)
            self._line.leave()
            self._transaction = self._driver.begin()
        self._line.leave()
        return self._driver

    @property
    def lost(self) -> bool:
        """Whether the connection is gone."""
        return self._line.lost

    def begin(self, *, alone: bool = False) -> None:
        """Begin, and query the time now and then; both are sent with the first statement."""
        self._line.check()
        self._open = not alone
        self._micros, self._asked = None, False
        if not alone:
            self._line.say(_BEGIN_WRITE if self._writes else _BEGIN_READ)
            if self._clock.is_due():
                self._ask_clock()

    def read_clock(self) -> datetime:
        """Return the database's time; wait for it only if the last answer is too old."""
        micros = self._micros or self._clock.read()
        if micros is None:
            if not self._asked:
                self._ask_clock()
            self._line.finish()
            micros = self._micros or 0
        return _EPOCH + timedelta(microseconds=micros)

    def commit(self) -> None:
        """Commit, and send what was announced with it."""
        self._line.say("COMMIT")
        result = self._line.finish()
        if result is None or result.command_status != b"COMMIT":
            error = psycopg.errors.InFailedSqlTransaction("the transaction had failed before")
            raise translate(error, psycopg.Error, "COMMIT")
        self._open = False
        if self._transaction is not None:
            self._line.leave()
            self._transaction.commit()  # tells SQLAlchemy; the driver finds nothing left to do
            self._transaction = None

    def rollback(self) -> None:
        """Roll back, without waiting for it."""
        if self._open and not self.lost:
            self._line.say("ROLLBACK")
            self._line.push()
        self._open = False
        if self._transaction is not None:
            self._forget(self._transaction)
            self._transaction = None

    def savepoint(self) -> None:
        """Set the savepoint."""
        self._line.say("SAVEPOINT mark")

    def release(self) -> None:
        """Release the savepoint; wait for all answers, and raise the first error since then."""
        self._line.say("RELEASE mark")
        self._line.finish()

    def rollback_to_savepoint(self) -> None:
        """Undo what happened since the savepoint, whether or not it failed."""
        with contextlib.suppress(DBAPIError):
            self._line.finish()
        self._line.say("ROLLBACK TO mark")
        self._line.say("RELEASE mark")
        self._line.finish()

    def fetch(self, statement: Prepared[R], values: Values) -> list[R]:
        """Run a statement and return its rows."""
        compiled = statement.compile(_WORDS, _find_reader, values)
        return compiled.read(_read_rows(self._run(compiled, values)))

    def select_later(self, statement: Prepared[R], values: Values) -> Deferred[R]:
        """Send a query; the returned function waits for its rows."""
        compiled = statement.compile(_WORDS, _find_reader, values)
        kept: list[pq.abc.PGresult] = []
        self._send(compiled, values, kept.append)

        def read() -> list[R]:
            if not kept:
                self._line.finish()
            return compiled.read(_read_rows(kept[0]))

        return read

    def execute_later(self, statement: Prepared[Any], values: Values) -> None:
        """Send a statement without waiting."""
        self._send(statement.compile(_WORDS, _find_reader, values), values)

    def count(self, statement: Prepared[Any], values: Values) -> int:
        """Run a statement and return how many rows it changed."""
        compiled = statement.compile(_WORDS, _find_reader, values)
        return self._run(compiled, values).command_tuples or 0

    def insert_each(self, table: Table, rows: Rows) -> None:
        """Insert many rows as one set."""
        defaults = list_defaults(table)
        names = (*rows[0], *(name for name in defaults if name not in rows[0]))
        self._send_set(_write_insert(table, names), table, names, [{**defaults, **r} for r in rows])

    def update_each(self, table: Table, rows: Rows, keep_if_none: tuple[str, ...]) -> None:
        """Update many rows as one set."""
        names = tuple(rows[0])
        self._send_set(_write_update(table, names, keep_if_none), table, names, rows)

    def announce(self, sender: str, keys: Sequence[str]) -> None:
        """Notify every listening server of the keys, with the commit."""
        for payload in _cut_payloads(sender, keys):
            self._line.send(*_NOTIFY, [payload.encode()])

    def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(DBAPIError):
            self._line.leave()
        if self.lost:
            self._driver.invalidate()
        self._driver.close()

    def _ask_clock(self) -> None:
        self._asked = True
        self._line.send(*_CLOCK, (), self._keep_clock)

    def _keep_clock(self, result: pq.abc.PGresult) -> None:
        self._micros = int(result.get_value(0, 0) or 0)
        self._clock.note_answer(self._micros)

    def _forget(self, transaction: RootTransaction) -> None:
        """End SQLAlchemy's transaction; the driver has nothing left to do."""
        with contextlib.suppress(DBAPIError):
            self._line.leave()
        if self.lost:
            self._driver.invalidate()
        transaction.close()

    def _run(self, compiled: Compiled[Any], values: Values) -> pq.abc.PGresult:
        self._send(compiled, values)
        result = self._line.finish()
        assert result is not None  # noqa: S101 - it answers the statement
        return result

    def _send(self, compiled: Compiled[Any], values: Values, keep: Keep | None = None) -> None:
        bound = [_write_value(value) for value in compiled.bind(values)]
        self._line.send(compiled.name, compiled.sql, bound, keep)

    def _send_set(
        self, form: tuple[bytes, str], table: Table, names: tuple[str, ...], rows: Rows
    ) -> None:
        """Send the rows as one JSON document: thousands of parameters would be slower."""
        converters = find_converters(table, names, _WORDS, keep_json=True)
        plain = [
            {**row, **{name: convert(row[name]) for name, convert in converters.items()}}
            for row in rows
        ]
        self._line.send(*form, [write_json(plain).encode()])


def _read_rows(result: pq.abc.PGresult) -> Iterator[list[bytes | None]]:
    positions = range(result.nfields)
    for number in range(result.ntuples):
        yield [result.get_value(number, position) for position in positions]


def _write_value(value: object) -> bytes | None:
    """Return a value in PostgreSQL's text format; the statement says which type it has."""
    match value:
        case None:
            return None
        case str():
            return value.encode()
        case bool():
            return b"t" if value else b"f"
        case int():
            return b"%d" % value
        case _:
            raise TypeError(f"a value of type {type(value).__name__} cannot be sent")


def _find_reader(kind: TypeEngine[Any]) -> Convert | None:
    implementation = kind.dialect_impl(_WORDS)
    stored = getattr(implementation, "impl_instance", implementation)
    parse = bytes.decode if isinstance(stored, JSON) else _FROM_TEXT[stored.python_type]
    convert = implementation.result_processor(_WORDS, None)
    if convert is None:
        return parse
    return lambda text: convert(parse(text))


def _cut_payloads(sender: str, keys: Sequence[str]) -> list[str]:
    payloads: list[str] = []
    part: list[str] = []
    size = 0
    for key in keys:
        length = len(json.dumps(key)) + 2
        if length > _PAYLOAD:
            continue  # a message; whom it concerns looks for itself when it is woken
        if part and size + length > _PAYLOAD:
            payloads.append(json.dumps([sender, *part]))
            part, size = [], 0
        part.append(key)
        size += length
    return [*payloads, json.dumps([sender, *part])] if part else payloads


@lru_cache
def _write_insert(table: Table, names: tuple[str, ...]) -> tuple[bytes, str]:
    columns = ", ".join(quote_all(names, _WORDS))
    rows = _write_rows(table, names)
    sql = f"INSERT INTO {table.name} ({columns}) SELECT {columns} FROM {rows}"  # noqa: S608 - our own names
    return name_statement(), sql


@lru_cache
def _write_update(
    table: Table, names: tuple[str, ...], keep_if_none: tuple[str, ...]
) -> tuple[bytes, str]:
    keys = list_keys(table)
    changes = ", ".join(
        write_assignment(
            column, f"new.{column}", f"{table.name}.{column}", keep_if_none=name in keep_if_none
        )
        for name, column in zip(names, quote_all(names, _WORDS), strict=True)
        if name not in keys
    )
    condition = " AND ".join(f"{table.name}.{key} = new.{key}" for key in quote_all(keys, _WORDS))
    rows = _write_rows(table, names)
    sql = f"UPDATE {table.name} SET {changes} FROM {rows} WHERE {condition}"  # noqa: S608 - our own names
    return name_statement(), sql


def _write_rows(table: Table, names: tuple[str, ...]) -> str:
    columns = zip(names, quote_all(names, _WORDS), strict=True)
    typed = ", ".join(f"{column} {table.c[name].type.compile(_WORDS)}" for name, column in columns)
    return f"json_to_recordset($1::json) AS new ({typed})"
