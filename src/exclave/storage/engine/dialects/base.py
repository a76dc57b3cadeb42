"""What storage asks of a database that the two do differently."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, ClassVar, Protocol

from sqlalchemy import Connection, Engine, Insert, Table

from exclave.storage.engine.dialects.bulk import Rows
from exclave.storage.engine.statements import Asked, Prepared, Values


class Session(Protocol):
    """One connection, and at most one transaction on it."""

    @property
    def connection(self) -> Connection:
        """The connection as SQLAlchemy knows it, in the same transaction."""
        ...

    @property
    def lost(self) -> bool:
        """Whether the connection is of no use any more."""
        ...

    def begin(self, *, alone: bool = False) -> None:
        """Begin a transaction; a connection that is gone is noticed here.

        A question that is asked alone needs none.
        """
        ...

    def read_clock(self) -> datetime | None:
        """Tell the database's time when the transaction first needs it, if it has a clock."""
        ...

    def commit(self) -> None:
        """Commit; whether it happened is unknown only if the connection is lost."""
        ...

    def rollback(self) -> None:
        """Undo the transaction; never fails."""
        ...

    def set_mark(self) -> None:
        """Remember this point of the transaction."""
        ...

    def drop_mark(self) -> None:
        """Forget the mark; what happened since stays."""
        ...

    def undo_to_mark(self) -> None:
        """Undo what happened since the mark, and forget it."""
        ...

    def fetch(self, statement: Prepared, values: Values) -> list[Any]:
        """Run a statement; answer its rows."""
        ...

    def ask(self, statement: Prepared, values: Values) -> Asked:
        """Run a statement whose rows are read later: what is asked meanwhile travels with it."""
        ...

    def change(self, statement: Prepared, values: Values) -> None:
        """Run a statement whose answer nobody needs; an error may be raised by a later one."""
        ...

    def count(self, statement: Prepared, values: Values) -> int:
        """Run a statement; answer how many rows it changed."""
        ...

    def insert_each(self, table: Table, rows: Rows) -> None:
        """Insert many rows of the same columns."""
        ...

    def update_each(self, table: Table, rows: Rows, kept: tuple[str, ...]) -> None:
        """Update many rows by their primary keys; in `kept` columns, None changes nothing."""
        ...

    def announce(self, sender: str, keys: Sequence[str]) -> None:
        """Tell other servers, when this transaction commits, which keys changed."""
        ...

    def close(self) -> None:
        """Give the connection up."""
        ...


class Dialect(Protocol):
    """One database product."""

    writers: ClassVar[int]
    """How many transactions write at once."""
    readers: ClassVar[int]
    """How many transactions read at once; none if reading takes no time worth waiting."""
    crosses_processes: ClassVar[bool]
    """Whether several servers may share the database."""
    has_clock: ClassVar[bool]
    """Whether the database's own time counts, so that no decision compares two servers' clocks."""

    def open_writer(self) -> Engine:
        """Make the engine whose transactions write."""
        ...

    def open_reader(self) -> Engine:
        """Make the engine whose transactions only read, each on one snapshot."""
        ...

    def open_session(self, engine: Engine, *, writes: bool) -> Session:
        """Connect."""
        ...

    def insert_missing(self, table: Table) -> Insert:
        """Make an insert that leaves rows alone which exist already."""
        ...

    def describe(self) -> dict[str, Any]:
        """Say which database this is, without credentials."""
        ...
