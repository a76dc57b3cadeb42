"""Everything that differs between SQLite and PostgreSQL."""

from exclave.storage.engine.dialects.base import Dialect as Dialect
from exclave.storage.engine.dialects.postgres import PostgresDialect as PostgresDialect
from exclave.storage.engine.dialects.sqlite import SqliteDialect as SqliteDialect


def choose_dialect(url: str) -> Dialect:
    """Pick the dialect that a database URL names."""
    return PostgresDialect(url) if url.startswith("postgresql") else SqliteDialect(url)
