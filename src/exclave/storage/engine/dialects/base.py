"""The protocols that SQLite and PostgreSQL implement: `Session` and `Dialect`."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, ClassVar, Protocol, TypeVar

from sqlalchemy import Connection, Engine, Insert, Table

from exclave.storage.engine.dialects.bulk import Rows
from exclave.storage.engine.statements import Deferred, Prepared, Values

R = TypeVar("R")


class Session(Protocol):
    """One connection, and at most one transaction on it."""

    @property
    def connection(self) -> Connection:
        """The SQLAlchemy connection, in the same transaction."""
        ...

    @property
    def lost(self) -> bool:
        """Whether the connection is broken."""
        ...

    def begin(self, *, alone: bool = False) -> None:
        """Begin a transaction; raise if the connection is broken.

        With `alone`, for a single query, only the connection is checked.
        """
        ...

    def read_clock(self) -> datetime | None:
        """Return the database's time, or None if it has no clock of its own."""
        ...

    def commit(self) -> None:
        """Commit; if the connection is lost meanwhile, the outcome is unknown."""
        ...

    def rollback(self) -> None:
        """Roll back; never raises."""
        ...

    def savepoint(self) -> None:
        """Set the savepoint."""
        ...

    def release(self) -> None:
        """Release the savepoint and keep what happened since."""
        ...

    def rollback_to_savepoint(self) -> None:
        """Undo what happened since the savepoint, and release it."""
        ...

    def fetch(self, statement: Prepared[R], values: Values) -> list[R]:
        """Run a statement and return its rows."""
        ...

    def select_later(self, statement: Prepared[R], values: Values) -> Deferred[R]:
        """Send a query; return a function that reads its rows."""
        ...

    def execute_later(self, statement: Prepared[Any], values: Values) -> None:
        """Send a statement without waiting; its error may be raised by a later one."""
        ...

    def count(self, statement: Prepared[Any], values: Values) -> int:
        """Run a statement and return how many rows it changed."""
        ...

    def insert_each(self, table: Table, rows: Rows) -> None:
        """Insert many rows of the same columns."""
        ...

    def update_each(self, table: Table, rows: Rows, keep_if_none: tuple[str, ...]) -> None:
        """Update rows by primary key; None leaves a column of `keep_if_none` as it is."""
        ...

    def announce(self, sender: str, keys: Sequence[str]) -> None:
        """Notify the other servers of these keys when the transaction commits."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class Dialect(Protocol):
    """One database product."""

    writers: ClassVar[int]
    """How many transactions write at once."""
    readers: ClassVar[int]
    """How many transactions read at once; 0 if reads run directly on the loop."""
    crosses_processes: ClassVar[bool]
    """Whether several servers may share the database."""
    has_clock: ClassVar[bool]
    """Whether the database's clock is used, so that no decision compares two servers' clocks."""

    def open_writer(self) -> Engine:
        """Return the engine for writing transactions."""
        ...

    def open_reader(self) -> Engine:
        """Return the engine for reading transactions, each on one snapshot."""
        ...

    def open_session(self, engine: Engine, *, writes: bool) -> Session:
        """Connect and return a session."""
        ...

    def insert_missing(self, table: Table) -> Insert:
        """Return an insert that does nothing for rows that exist."""
        ...

    def describe(self) -> dict[str, str]:
        """Return which database this is, without credentials."""
        ...
