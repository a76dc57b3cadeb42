"""Transactions: plain functions over a `Tx`, run where the database wants them."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar
from zlib import crc32

from sqlalchemy import Connection, CursorResult, Executable, Insert, Row, Table
from sqlalchemy.exc import DBAPIError, OperationalError

from exclave.base.clock import Clock
from exclave.base.errors import Problem, Unavailable
from exclave.storage.engine import greenlets
from exclave.storage.engine.batched_notify import News, is_news
from exclave.storage.engine.dialects import Dialect
from exclave.storage.engine.dialects.base import Session
from exclave.storage.engine.dialects.bulk import Rows
from exclave.storage.engine.group_commit import Batch, Handler, Item, Writer, commit_batch
from exclave.storage.engine.growth import Growth
from exclave.storage.engine.hub import MESSAGE, Hub
from exclave.storage.engine.sessions import Sessions
from exclave.storage.engine.statements import Asked, Prepared
from exclave.storage.engine.unflushed_rows import Drafts
from exclave.storage.engine.workflow_cache import Memory

T = TypeVar("T")
C = TypeVar("C")

StatementFailed = DBAPIError
"""What the database refuses. The transaction may be lost by then: catch it only to raise it."""
AnyRow = Row[*tuple[Any, ...]]
"""A row of whatever columns; queries say which."""


class Tx:
    """An open transaction. Queries use it; nobody but the database commits it."""

    def __init__(self, session: Session, dialect: Dialect, clock: Clock, memory: Memory) -> None:
        """Wrap a session in a transaction; the clock counts where the database has none."""
        self.memory = memory
        self.flushes = 0
        """How often rows that were inserted have been written."""
        self._session = session
        self._drafts = Drafts()
        self._dialect = dialect
        self._clock = clock
        self._now: datetime | None = None
        self.wakes: list[str] = []
        self.told: list[str] = []
        self.deeds: list[Callable[[], None]] = []
        self._mark = (0, 0, 0)
        self.effort = 0
        """What was counted of the work that this transaction does beside its queries."""

    @property
    def session(self) -> Session:
        """The session, after what was inserted has been written."""
        if self._drafts:
            self.flushes += 1
            for table, rows in self._drafts.take():
                self._session.insert_each(table, rows)
        return self._session

    @property
    def now(self) -> datetime:
        """The one moment at which this transaction happens."""
        if self._now is None:
            own = self._session.read_clock() if self._dialect.has_clock else None
            self._now = own or self._clock.now()
        return self._now

    def run(
        self,
        statement: Executable,
        rows: Sequence[Mapping[str, Any]] | Mapping[str, Any] | None = None,
    ) -> CursorResult[*tuple[Any, ...]]:
        """Execute a statement that is not worth preparing."""
        return self.session.connection.execute(statement, rows)

    def all(self, statement: Prepared | Executable, **values: Any) -> Sequence[AnyRow]:
        """Fetch every row; `values` are those of the statement's parameters."""
        if isinstance(statement, Prepared):
            return self.session.fetch(statement, values)
        return self.session.connection.execute(statement, values).all()

    def first(self, statement: Prepared | Executable, **values: Any) -> AnyRow | None:
        """Fetch the first row, or None."""
        if isinstance(statement, Prepared):
            found = self.session.fetch(statement, values)
            return found[0] if found else None
        return self.session.connection.execute(statement, values).first()

    def ask(self, statement: Prepared, **values: Any) -> Asked:
        """Run a statement now and read its rows later; several that are asked share an exchange."""
        return self.session.ask(statement, values)

    def change(self, statement: Prepared, **values: Any) -> None:
        """Run a statement whose answer nobody needs; what goes wrong is raised by a later one."""
        self.session.change(statement, values)

    def one(self, statement: Prepared, **values: Any) -> AnyRow:
        """Fetch a row that is there."""
        found = self.session.fetch(statement, values)
        if not found:
            raise LookupError("a row that must be there is missing")
        row: AnyRow = found[0]
        return row

    def count(self, statement: Prepared, **values: Any) -> int:
        """Run a statement that changes rows; tell how many."""
        return self.session.count(statement, values)

    def insert_missing(self, table: Table) -> Insert:
        """Make an insert that leaves rows alone which exist already."""
        return self._dialect.insert_missing(table)

    def insert_each(self, table: Table, rows: Rows) -> None:
        """Insert rows of the same columns; they are written before anything else happens.

        What the database has against them is raised then.
        """
        if rows and not self._drafts.add(table, rows):
            self.session.insert_each(table, rows)

    def update_each(self, table: Table, rows: Rows, *, kept: tuple[str, ...] = ()) -> None:
        """Update rows by their primary keys; in `kept` columns, None leaves what is there."""
        there = [row for row in rows if not self._drafts.amend(table, row, kept)]
        if there:
            self.session.update_each(table, there, kept)

    def amend(self, table: Table, values: Mapping[str, Any]) -> bool:
        """Change a row that is inserted but not yet written; tell whether there is one."""
        return self._drafts.amend(table, values)

    def list_drafts(self, table: Table) -> Rows:
        """List the rows of a table that are inserted but not yet written."""
        return self._drafts.list(table)

    def wake(self, *keys: str) -> None:
        """Wake who watches these keys, once the transaction is committed."""
        self.wakes.extend(keys)

    def tell(self, topic: str, text: str) -> None:
        """Tell the other servers, once committed; what is too long for that is not told."""
        self.told.append(f"{MESSAGE}{topic} {text}")

    def when_committed(self, deed: Callable[[], None]) -> None:
        """Do something small once the transaction is committed, before anybody is woken."""
        self.deeds.append(deed)

    def set_mark(self) -> None:
        """Remember this point of the transaction."""
        self.session.set_mark()
        self._mark = (len(self.wakes), len(self.told), len(self.deeds))

    def drop_mark(self) -> None:
        """Forget the mark; what went wrong since then is raised here at the latest."""
        self.session.drop_mark()

    def undo_to_mark(self) -> None:
        """Undo what happened since the mark, and forget it."""
        self._drafts = Drafts()
        self._session.undo_to_mark()
        wakes, told, deeds = self._mark
        del self.wakes[wakes:], self.told[told:], self.deeds[deeds:]

    @property
    def connection(self) -> Connection:
        """The connection as SQLAlchemy knows it, for migrations."""
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
    """Reads on snapshots, writes in groups; the only thing that commits."""

    def __init__(
        self, dialect: Dialect, clock: Clock, hub: Hub, *, name: str, inline: bool = False
    ) -> None:
        """Open the engines. `inline` runs everything on the calling loop, for simulations."""
        self.dialect = dialect
        self.hub = hub
        self.name = name
        self._clock = clock
        self._memory = Memory()
        self._inline = inline
        self._write_engine = dialect.open_writer()
        self._read_engine = dialect.open_reader()
        self._writing = Sessions(lambda: dialect.open_session(self._write_engine, writes=True))
        self._reading = Sessions(lambda: dialect.open_session(self._read_engine, writes=False))
        self._news = News(hub, self._send_news)
        self._writers = [Writer(self._commit, self._wake) for _ in range(dialect.writers)]
        self._readers = asyncio.Semaphore(dialect.readers) if dialect.readers else None

    @property
    def growth(self) -> Growth:
        """What was stored through this server and is not yet counted."""
        return self._memory.growth

    async def read(self, query: Callable[[Tx], T], *, alone: bool = False) -> T:
        """Run a function that only reads, on one snapshot; with `alone` it asks one thing only."""
        if self._readers is None or self._inline:
            return self._read(query, alone=alone)
        async with self._readers:
            return await greenlets.run(lambda: self._read(query, alone=alone))

    async def write(
        self, change: Callable[[Tx], T | Problem], *, key: str = "", patient: bool = False
    ) -> T:
        """Run a function in a transaction; all of it is committed when this returns, or nothing.

        A problem that `change` raises undoes it; one that it returns is raised after the commit.
        Where commits are what costs, a `patient` one waits a moment for others to share it with.
        """
        return await self.write_each(_each(change), None, key=key, patient=patient)

    async def write_each(
        self, handler: Handler[C, T], command: C, *, key: str = "", patient: bool = False
    ) -> T:
        """Hand a command to a set-based handler, together with its like that arrive meanwhile."""
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
        return Tx(session, self.dialect, self._clock, self._memory)

    def _announce(self, tx: Tx) -> None:
        """Let the commit wake the other servers, as far as work depends on it."""
        if not self.dialect.crosses_processes:
            return
        urgent = (key for key in dict.fromkeys(tx.wakes) if not is_news(key))
        keys = (*tx.told, *urgent)
        if keys:
            tx.session.announce(self.name, keys)

    def _wake(self, keys: Sequence[str]) -> None:
        self.hub.wake(keys)
        if self.dialect.crosses_processes:
            self._news.add(keys)

    async def _send_news(self, keys: tuple[str, ...]) -> None:
        await self.write(lambda tx: tx.told.extend(keys))


def _each(change: Callable[[Tx], T | Problem]) -> Handler[None, T]:
    def run_alone(tx: Tx, commands: Sequence[None]) -> Sequence[T | Problem]:
        del commands
        return [change(tx)]

    return run_alone
