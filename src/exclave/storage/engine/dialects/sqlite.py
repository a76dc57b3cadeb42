"""SQLite: one file, one writer, readers on snapshots (WAL), every commit on disk."""

from pathlib import Path
from typing import Any, ClassVar

from sqlalchemy import Connection, Engine, Insert, Table, create_engine, event
from sqlalchemy.dialects.sqlite import insert
from sqlalchemy.pool import StaticPool

from exclave.storage.engine.dialects.sqlite_session import SqliteSession
from exclave.storage.engine.private_files import create_private, make_private

_PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA foreign_keys=ON",
    "PRAGMA busy_timeout=10000",
    "PRAGMA temp_store=MEMORY",
    "PRAGMA cache_size=-65536",
    "PRAGMA wal_autocheckpoint=4000",
)
_OPTIONS = {"check_same_thread": False, "cached_statements": 512}


class SqliteDialect:
    """The embedded default."""

    writers: ClassVar = 1
    readers: ClassVar = 0
    crosses_processes: ClassVar = False
    has_clock: ClassVar = False

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

    def open_session(self, engine: Engine, *, writes: bool) -> SqliteSession:
        """Connect; how a transaction begins is the engine's matter."""
        return SqliteSession(engine.connect(), writes=writes)

    def insert_missing(self, table: Table) -> Insert:
        """Make an insert that leaves rows alone which exist already."""
        return insert(table).on_conflict_do_nothing()

    def describe(self) -> dict[str, str]:
        """Return which database this is."""
        return {"database": "sqlite", "file": self.url.removeprefix("sqlite:///")}

    def _open(self, begin: str) -> Engine:
        if self._in_memory:
            if self._shared is None:
                engine = create_engine(self.url, poolclass=StaticPool, connect_args=_OPTIONS)
                self._shared = _prepare(engine, "BEGIN")
            return self._shared
        file = Path(self.url.removeprefix("sqlite:///"))
        create_private(file)  # what SQLite makes beside it gets the same mode
        for suffix in ("-wal", "-shm"):
            make_private(file.with_name(file.name + suffix))
        return _prepare(create_engine(self.url, connect_args=_OPTIONS), begin)


def _prepare(engine: Engine, begin: str) -> Engine:
    def set_up(connection: Any, record: object) -> None:
        del record
        connection.isolation_level = None  # SQLAlchemy says BEGIN, not the driver
        for pragma in _PRAGMAS:
            connection.execute(pragma).close()

    def say_begin(connection: Connection) -> None:
        raw: Any = connection.connection.driver_connection
        if not raw.in_transaction:
            raw.execute(begin)

    event.listen(engine, "connect", set_up)
    event.listen(engine, "begin", say_begin)
    return engine
