"""What storage asks of a database that the two do differently."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, ClassVar, Protocol

from sqlalchemy import Connection, Engine, Insert, Table

from exclave.storage.dialects.bulk import Rows


class Dialect(Protocol):
    """One database product."""

    writers: ClassVar[int]
    """How many threads write at once; with none, only commits leave the event loop."""
    crosses_processes: ClassVar[bool]
    """Whether several servers may share the database."""

    def open_writer(self) -> Engine:
        """Make the engine whose transactions write."""
        ...

    def open_reader(self) -> Engine:
        """Make the engine whose transactions only read, each on one snapshot."""
        ...

    def insert_missing(self, table: Table) -> Insert:
        """Make an insert that leaves rows alone which exist already."""
        ...

    def insert_each(self, connection: Connection, table: Table, rows: Rows) -> None:
        """Insert many rows of the same columns."""
        ...

    def update_each(
        self, connection: Connection, table: Table, rows: Rows, kept: tuple[str, ...]
    ) -> None:
        """Update many rows by their primary keys; in `kept` columns, None changes nothing."""
        ...

    def read_clock(self, connection: Connection) -> datetime | None:
        """Tell the database's own time, or None where it has no clock of its own."""
        ...

    def announce(self, connection: Connection, sender: str, keys: Sequence[str]) -> None:
        """Tell other servers, when this transaction commits, which keys changed."""
        ...

    def describe(self) -> dict[str, Any]:
        """Say which database this is, without credentials."""
        ...
