"""Databases of tests that compile a statement once per process, not once per test.

An engine keeps what it compiled, and most tests have a database, and so an engine, of their own.
"""

from typing import Any

from sqlalchemy import Dialect as SqlDialect
from sqlalchemy import Engine

from exclave.storage.engine.dialects import Dialect, PostgresDialect, SqliteDialect

_shared: dict[str, tuple[SqlDialect, dict[Any, Any]]] = {}
"""By kind of engine: the dialect that all engines of it use, and what was compiled for it."""


class _SharingSqlite(SqliteDialect):
    def open_writer(self) -> Engine:
        return _share("sqlite", super().open_writer())

    def open_reader(self) -> Engine:
        return _share("sqlite", super().open_reader())


class _SharingPostgres(PostgresDialect):
    def open_writer(self) -> Engine:
        return _share("postgres-writer", super().open_writer())

    def open_reader(self) -> Engine:
        return _share("postgres-reader", super().open_reader())


def choose_sharing_dialect(url: str) -> Dialect:
    """Pick the dialect that a database URL names, with what was compiled for others before."""
    return _SharingPostgres(url) if url.startswith("postgresql") else _SharingSqlite(url)


def _share(kind: str, engine: Engine) -> Engine:
    if kind not in _shared:
        with engine.connect():
            pass  # the first connection tells the dialect what its database can do
        _shared[kind] = (engine.dialect, {})
    engine.dialect, compiled = _shared[kind]
    engine.update_execution_options(compiled_cache=compiled)
    return engine
