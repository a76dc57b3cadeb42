"""Both databases for tests: SQLite in memory, and a fresh database of a real PostgreSQL server."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from exclave.storage.migrate import upgrade
from tests.support.postgres import PostgresServer, start_postgres

SQLITE = "sqlite:///:memory:"
NAMES = ("sqlite", "postgres")


@contextmanager
def open_database(name: str) -> Iterator[str]:
    """Yield the URL of an empty, migrated database of that product."""
    if name == "sqlite":
        yield SQLITE
        return
    with get_postgres().fresh_database() as url:
        yield url


@cache
def get_postgres() -> PostgresServer:
    """Start the one PostgreSQL server of this test process; it stops with the process."""
    server = start_postgres(Path(mkdtemp(prefix="exclave-pg-")), durable=False)
    server.make_template(upgrade)
    return server
