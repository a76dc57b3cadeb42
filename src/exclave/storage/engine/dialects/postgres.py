"""PostgreSQL: row locks and NOTIFY make it the engine that several servers share."""

from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

from sqlalchemy import Engine, Insert, Table, create_engine, make_url
from sqlalchemy.dialects.postgresql import insert

from exclave.base.clock import SystemClock
from exclave.storage.engine.dialects.postgres_clock import ServerClock
from exclave.storage.engine.dialects.postgres_connection import LoopConnection
from exclave.storage.engine.dialects.postgres_session import PostgresSession
from exclave.storage.engine.greenlets import call_beside

_SESSION = (
    "-c lock_timeout=2000 -c statement_timeout=15000 -c idle_in_transaction_session_timeout=30000"
    " -c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off"
)
"""Every prepared statement finds its rows by an index. Left to choose, PostgreSQL reads a table
whole that was small when it made its plan, and keeps that plan while the table grows."""


class PostgresDialect:
    """The database for replicas."""

    writers: ClassVar = 4
    readers: ClassVar = 8
    crosses_processes: ClassVar = True
    has_clock: ClassVar = True

    def __init__(self, url: str) -> None:
        self.url = url
        self._clock = ServerClock(SystemClock())
        # Threads of their own: whatever else blocks a thread must not keep us from the database.
        self._connecting = ThreadPoolExecutor(self.writers + self.readers, "connecting")

    def open_writer(self) -> Engine:
        """Make the engine of the writers."""
        return self._open("READ COMMITTED", pool=self.writers)

    def open_reader(self) -> Engine:
        """Make the engine of the readers; each transaction sees one snapshot."""
        return self._open("REPEATABLE READ", pool=self.readers)

    def open_session(self, engine: Engine, *, writes: bool) -> PostgresSession:
        """Connect; a database that does not answer keeps only this caller waiting."""
        connection = call_beside(self._connecting, engine.connect)
        return PostgresSession(connection, self._clock, writes=writes)

    def insert_missing(self, table: Table) -> Insert:
        """Make an insert that leaves rows alone which exist already."""
        return insert(table).on_conflict_do_nothing()

    def describe(self) -> dict[str, str]:
        """Return which database this is, without the password."""
        return {"database": "postgresql", "url": make_url(self.url).render_as_string()}

    def _open(self, isolation: str, *, pool: int) -> Engine:
        return create_engine(
            self.url,
            isolation_level=isolation,
            pool_size=pool,
            max_overflow=0,
            pool_pre_ping=False,
            creator=self._connect,
        )

    def _connect(self) -> LoopConnection:
        conninfo = make_url(self.url).set(drivername="postgresql")
        return LoopConnection.connect(
            conninfo.render_as_string(hide_password=False), options=_SESSION, connect_timeout=5
        )
