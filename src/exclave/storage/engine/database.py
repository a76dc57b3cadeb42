"""Transactions: synchronous functions over a `Tx`, run by a `Database`."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar, overload
from zlib import crc32

from sqlalchemy import Connection, CursorResult, Executable, Insert, Table
from sqlalchemy.exc import DBAPIError, OperationalError

from exclave.base.clock import Clock
from exclave.base.errors import Problem, Unavailable
from exclave.storage.engine import greenlets
from exclave.storage.engine.batched_notify import BatchedNotify, is_batched
from exclave.storage.engine.dialects import Dialect
from exclave.storage.engine.dialects.base import Session
from exclave.storage.engine.dialects.bulk import Rows
from exclave.storage.engine.group_commit import Batch, Handler, Item, Writer, commit_batch
from exclave.storage.engine.growth import Growth
from exclave.storage.engine.hub import MESSAGE, Hub
from exclave.storage.engine.sessions import Sessions
from exclave.storage.engine.statements import AnyRow as AnyRow
from exclave.storage.engine.statements import Deferred, Prepared, Values, find_row_maker
from exclave.storage.engine.unflushed_rows import UnflushedRows
from exclave.storage.engine.workflow_cache import WorkflowCache

T = TypeVar("T")
C = TypeVar("C")
R = TypeVar("R")

StatementFailed = DBAPIError
"""Raised for what the database refuses. The transaction may be lost: catch it only to re-raise."""


class Tx:
    """An open transaction. Queries use it; only `Database` commits it.

    Two things differ from a plain connection. Inserts are held back until the next statement or
    the commit (`UnflushedRows`). With PostgreSQL, statements are pipelined: those whose result
    nobody reads are sent with the next one whose result is read, and their errors are raised there
    (`PostgresSession`).
    """

    def __init__(
        self, session: Session, dialect: Dialect, clock: Clock, cache: WorkflowCache, growth: Growth
    ) -> None:
        """Wrap a session in a transaction; the clock is for databases without one of their own."""
        self.cache = cache
        self.growth = growth
        self.flushes = 0
        """How often held-back inserts were sent: a claim that read earlier has to read again."""
        self._session = session
        self._unflushed = UnflushedRows()
        self._dialect = dialect
        self._clock = clock
        self._now: datetime | None = None
        self.wakes: list[str] = []
        self.messages: list[str] = []
        self.callbacks: list[Callable[[], None]] = []
        self._savepoint = (0, 0, 0)
        self.effort = 0
        """A count of the work beside queries, which use cases add to and limit."""

    @property
    def session(self) -> Session:
        """The session, after a flush of the inserts that were held back."""
        if self._unflushed:
            self.flushes += 1
            for table, rows in self._unflushed.pop_all():
                self._session.insert_each(table, rows)
        return self._session

    @property
    def now(self) -> datetime:
        """The time of this transaction: the same at each call."""
        if self._now is None:
            own = self._session.read_clock() if self._dialect.has_clock else None
            self._now = own or self._clock.now()
        return self._now

    def run(
        self,
        statement: Executable,
        rows: Sequence[Values] | Values | None = None,
    ) -> CursorResult[*tuple[Any, ...]]:
        """Execute a statement through SQLAlchemy: for what is too rare to prepare."""
        return self.session.connection.execute(statement, rows)

    @overload
    def all(self, statement: Prepared[R], /, **values: Any) -> Sequence[R]: ...

    @overload
    def all(self, statement: Executable, /, **values: Any) -> Sequence[AnyRow]: ...

    @overload
    def all(self, statement: Executable, row: type[R], /, **values: Any) -> Sequence[R]: ...

    def all(
        self, statement: Prepared[Any] | Executable, row: type[Any] | None = None, /, **values: Any
    ) -> Sequence[Any]:
        """Return all rows; `values` are the statement's parameters.

        The rows of an unprepared statement are values of `row`, if it is passed: a NamedTuple or a
        dataclass with the columns as its fields. A prepared one names that type itself.
        """
        if isinstance(statement, Prepared):
            return self.session.fetch(statement, values)
        result = self.session.connection.execute(statement, values)
        if row is None:
            return result.all()
        make = find_row_maker(row, tuple(result.keys()))
        return [make(raw_row) for raw_row in result.all()]

    @overload
    def first(self, statement: Prepared[R], /, **values: Any) -> R | None: ...

    @overload
    def first(self, statement: Executable, /, **values: Any) -> AnyRow | None: ...

    @overload
    def first(self, statement: Executable, row: type[R], /, **values: Any) -> R | None: ...

    def first(
        self, statement: Prepared[Any] | Executable, row: type[Any] | None = None, /, **values: Any
    ) -> Any:
        """Return the first row, or None; see `all`."""
        if isinstance(statement, Prepared):
            rows = self.session.fetch(statement, values)
            return rows[0] if rows else None
        result = self.session.connection.execute(statement, values)
        raw_row = result.first()
        if row is None or raw_row is None:
            return raw_row
        return find_row_maker(row, tuple(result.keys()))(raw_row)

    def select_later(self, statement: Prepared[R], **values: Any) -> Deferred[R]:
        """Send a query and return a function that reads its rows.

        Queries that are sent before the first of them is read share one round trip.
        """
        return self.session.select_later(statement, values)

    def execute_later(self, statement: Prepared[Any], **values: Any) -> None:
        """Send a statement without waiting; its error is raised by a later statement."""
        self.session.execute_later(statement, values)

    def one(self, statement: Prepared[R], **values: Any) -> R:
        """Return the first row; raise LookupError if there is none."""
        rows = self.session.fetch(statement, values)
        if not rows:
            raise LookupError("a row that must be there is missing")
        return rows[0]

    def count(self, statement: Prepared[Any], **values: Any) -> int:
        """Run a statement that changes rows; return how many."""
        return self.session.count(statement, values)

    def insert_missing(self, table: Table) -> Insert:
        """Return an insert that does nothing for rows that exist."""
        return self._dialect.insert_missing(table)

    def insert_each(self, table: Table, rows: Rows) -> None:
        """Insert rows of the same columns, before the next statement runs.

        An error, such as a violated key, is raised then.
        """
        if rows and not self._unflushed.add(table, rows):
            self.session.insert_each(table, rows)

    def update_each(self, table: Table, rows: Rows, *, keep_if_none: tuple[str, ...] = ()) -> None:
        """Update rows by their primary keys; None leaves a column of `keep_if_none` as it is."""
        stored = [row for row in rows if not self._unflushed.patch(table, row, keep_if_none)]
        if stored:
            self.session.update_each(table, stored, keep_if_none)

    def patch_unflushed(self, table: Table, values: Values) -> bool:
        """Change a row that is inserted but not yet sent; return whether there is one."""
        return self._unflushed.patch(table, values)

    def list_unflushed(self, table: Table) -> Rows:
        """List the rows of a table that are inserted but not yet sent."""
        return self._unflushed.list(table)

    def wake(self, *keys: str) -> None:
        """Wake the watchers of these keys once the transaction is committed."""
        self.wakes.extend(keys)

    def broadcast(self, topic: str, text: str) -> None:
        """Send a message to the other servers with the commit; above 7 kB it is dropped."""
        self.messages.append(f"{MESSAGE}{topic} {text}")

    def when_committed(self, callback: Callable[[], None]) -> None:
        """Call something quick once the transaction is committed, before anybody is woken."""
        self.callbacks.append(callback)

    def savepoint(self) -> None:
        """Set the one savepoint that a transaction has at a time."""
        self.session.savepoint()
        self._savepoint = (len(self.wakes), len(self.messages), len(self.callbacks))

    def release(self) -> None:
        """Release the savepoint; an error since then is raised here at the latest."""
        self.session.release()

    def rollback_to_savepoint(self) -> None:
        """Undo everything since the savepoint, wake-ups and callbacks included, and release it."""
        self._unflushed = UnflushedRows()  # not flushed first: these inserts are undone as well
        self._session.rollback_to_savepoint()
        wakes, messages, callbacks = self._savepoint
        del self.wakes[wakes:], self.messages[messages:], self.callbacks[callbacks:]

    @property
    def connection(self) -> Connection:
        """The SQLAlchemy connection, for migrations."""
        return self.session.connection


class Transactions(Protocol):
    """What use cases need of a database: to run transactions, and two facts about where.

    `Database` implements it, and so does the wrapper that spends an idempotency key with the first
    write of a request (`control/idempotency.py`).
    """

    @property
    def dialect(self) -> Dialect:
        """The database that the statements are written for."""
        ...

    @property
    def growth(self) -> Growth:
        """What was stored through this server and is not yet counted."""
        ...

    async def read(self, query: Callable[[Tx], T], *, alone: bool = False) -> T:
        """Run a function that only reads; see `Database.read`."""
        ...

    async def write(
        self, change: Callable[[Tx], T | Problem], *, key: str = "", patient: bool = False
    ) -> T:
        """Run a function in a transaction; see `Database.write`."""
        ...

    async def write_each(
        self, handler: Handler[C, T], command: C, *, key: str = "", patient: bool = False
    ) -> T:
        """Run a command of a set-based handler; see `Database.write_each`."""
        ...


class Database:
    """Runs reads on snapshots and writes in groups; nothing else commits."""

    def __init__(
        self, dialect: Dialect, clock: Clock, hub: Hub, *, name: str, inline: bool = False
    ) -> None:
        """Open the engines. `inline` runs everything on the calling loop, for simulations."""
        self.dialect = dialect
        self.hub = hub
        self.name = name
        self._clock = clock
        self._cache = WorkflowCache()
        self.growth = Growth()
        """What was stored through this server and is not yet counted."""
        self._inline = inline
        self._write_engine = dialect.open_writer()
        self._read_engine = dialect.open_reader()
        self._writing = Sessions(lambda: dialect.open_session(self._write_engine, writes=True))
        self._reading = Sessions(lambda: dialect.open_session(self._read_engine, writes=False))
        self._batched = BatchedNotify(hub, self._send_batch)
        self._writers = [Writer(self._commit, self._wake) for _ in range(dialect.writers)]
        self._readers = asyncio.Semaphore(dialect.readers) if dialect.readers else None

    async def read(self, query: Callable[[Tx], T], *, alone: bool = False) -> T:
        """Run a function that only reads, on one snapshot; `alone` is for a single query."""
        if self._readers is None or self._inline:
            return self._read(query, alone=alone)
        async with self._readers:
            return await greenlets.run(lambda: self._read(query, alone=alone))

    async def write(
        self, change: Callable[[Tx], T | Problem], *, key: str = "", patient: bool = False
    ) -> T:
        """Run a function in a transaction; when this returns it is committed, if it raises undone.

        A problem that `change` raises undoes it; one that it returns is raised after the commit.
        A `patient` write waits up to a second for another to share the commit with.
        """
        return await self.write_each(_each(change), None, key=key, patient=patient)

    async def write_each(
        self, handler: Handler[C, T], command: C, *, key: str = "", patient: bool = False
    ) -> T:
        """Pass a command to a handler of many, together with those that arrive meanwhile."""
        if self._inline:
            (outcome,), wakes = self._commit([Item(handler, command)])
            self._wake(wakes)
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome  # type: ignore[no-any-return]
        writer = self._writers[crc32(key.encode()) % len(self._writers)]
        return await writer.submit(Item(handler, command, patient=patient))

    def close(self) -> None:
        """Close all connections; nothing may be submitted any more."""
        self._writing.close()
        self._reading.close()
        self._write_engine.dispose()
        self._read_engine.dispose()

    def write_now(self, change: Callable[[Tx], T | Problem]) -> T:
        """Run a write on this thread: for start-up and command-line tools, before any loop runs."""
        (outcome,), wakes = self._commit([Item(_each(change), None)])
        self.hub.wake_soon(wakes)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome  # type: ignore[no-any-return]

    def _read(self, query: Callable[[Tx], T], *, alone: bool = False) -> T:
        try:
            with self._reading.begin(alone=alone) as session:
                return query(self._open_tx(session))
        except OperationalError as error:
            message = f"the database does not answer: {type(error).__name__}"
            raise Unavailable(message) from error

    def _commit(self, batch: Batch) -> tuple[list[Any], list[str]]:
        return commit_batch(self._writing, self._open_tx, self._announce, batch)

    def _open_tx(self, session: Session) -> Tx:
        return Tx(session, self.dialect, self._clock, self._cache, self.growth)

    def _announce(self, tx: Tx) -> None:
        """Notify the other servers with the commit of the keys that work waits for."""
        if not self.dialect.crosses_processes:
            return
        urgent = (key for key in dict.fromkeys(tx.wakes) if not is_batched(key))
        keys = (*tx.messages, *urgent)
        if keys:
            tx.session.announce(self.name, keys)

    def _wake(self, keys: Sequence[str]) -> None:
        self.hub.wake(keys)
        if self.dialect.crosses_processes:
            self._batched.add(keys)

    async def _send_batch(self, keys: tuple[str, ...]) -> None:
        await self.write(lambda tx: tx.messages.extend(keys))


def _each(change: Callable[[Tx], T | Problem]) -> Handler[None, T]:
    def run_alone(tx: Tx, commands: Sequence[None]) -> Sequence[T | Problem]:
        del commands
        return [change(tx)]

    return run_alone
