"""Counts what goes to the database."""

import pytest

from exclave.storage.engine.dialects.postgres_connection import Pipeline
from exclave.storage.engine.dialects.postgres_session import PostgresSession
from exclave.storage.engine.dialects.sqlite_session import SqliteSession


class Counter:
    """Statements on both databases, and exchanges with PostgreSQL."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._count = 0
        self._watch(patch, SqliteSession, "_run")
        self._watch(patch, PostgresSession, "_send")
        self._watch(patch, PostgresSession, "_send_set")
        self.exchanges = 0
        finish = Pipeline.finish

        def count(line: Pipeline) -> object:
            self.exchanges += bool(line._expected)
            return finish(line)

        patch.setattr(Pipeline, "finish", count)

    def take(self) -> int:
        """Tell the count since the last call."""
        taken, self._count = self._count, 0
        return taken

    def _watch(self, patch: pytest.MonkeyPatch, kind: type, name: str) -> None:
        run = getattr(kind, name)

        def count(*args: object) -> object:
            self._count += 1
            return run(*args)

        patch.setattr(kind, name, count)
