"""Makes the storage engine ask a scheduler before each statement that it sends to PostgreSQL."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from sqlalchemy import Engine, event

from exclave.storage.engine import greenlets
from exclave.storage.engine.batched_notify import BatchedNotify
from exclave.storage.engine.dialects import postgres_connection
from exclave.storage.engine.dialects.postgres_connection import LoopConnection, Pipeline
from exclave.storage.engine.dialects.postgres_session import PostgresSession
from tests.faults.interleaving.scheduler import Scheduler

Rewrite = Callable[[str], str]
"""Changes a statement: how a condition is taken out to see whether anybody notices."""
_LET_PASS = ("pg_notify", "clock_timestamp", "FROM signing_keys")
"""Sent now and then as the real time wants it, and of no importance for anybody else."""
_ENDS = frozenset({"COMMIT", "ROLLBACK"})
_open_session = PostgresSession.__init__
_send, _say, _carry = Pipeline.send, Pipeline.say, LoopConnection.wait


class Hooks:
    """Stands between the storage engine and libpq.

    A transaction that only reads has one turn: it sees everything as it was at one moment.
    """

    def __init__(self, scheduler: Scheduler, rewrite: Rewrite | None = None) -> None:
        self._scheduler = scheduler
        self._rewrite = rewrite
        self._readers: set[Pipeline] = set()

    @contextmanager
    def attached(self, engines: Sequence[Engine]) -> Iterator[None]:
        """Make every writing transaction of this process wait for its turns."""

        def pause(_1: object, _2: object, sql: str, *_3: object) -> None:
            self._scheduler.pause(sql)

        with ExitStack() as undo:
            for where, name, hook in self._list_patches():
                undo.enter_context(patch.object(where, name, hook))
            for engine in engines:
                event.listen(engine, "before_cursor_execute", pause)
                undo.callback(event.remove, engine, "before_cursor_execute", pause)
            yield

    def _list_patches(self) -> list[tuple[object, str, Any]]:
        def open_session(session: PostgresSession, *args: Any, writes: bool) -> None:
            _open_session(session, *args, writes=writes)
            if not writes:
                self._readers.add(session._line)

        def carry(connection: Any, *args: Any, **more: Any) -> Any:
            self._scheduler.note_backend(connection.pgconn)
            return _carry(connection, *args, **more)

        def wait(descriptor: int, *, write: bool) -> None:
            with self._scheduler.in_flight(descriptor):
                greenlets.wait_for_socket(descriptor, write=write)

        return [
            (PostgresSession, "__init__", open_session),
            (Pipeline, "send", self._make_send()),
            (Pipeline, "say", self._make_say()),
            (LoopConnection, "wait", carry),
            (postgres_connection, "wait_for_socket", wait),
            # Sent by a timer, so in an order that no seed decides.
            (BatchedNotify, "add", lambda *_: None),
        ]

    def _make_send(self) -> Callable[..., None]:
        def send(line: Pipeline, name: bytes, sql: str, bound: Any, keep: Any = None) -> None:
            changed = sql if self._rewrite is None else self._rewrite(sql)
            if changed != sql:
                name, sql = name + b"_changed", changed
            if not any(each in sql for each in _LET_PASS):
                self._take_turn(line, sql)
            _send(line, name, sql, bound, keep)

        return send

    def _make_say(self) -> Callable[..., None]:
        def say(line: Pipeline, sql: str) -> None:
            self._scheduler.note_backend(line._pq)
            if sql == "COMMIT":
                self._take_turn(line, sql)
            elif line in self._readers and sql.startswith("BEGIN"):
                self._scheduler.pause(sql)
            _say(line, sql)
            if sql in _ENDS:
                self._scheduler.note_end()

        return say

    def _take_turn(self, line: Pipeline, sql: str) -> None:
        if not self._scheduler.is_on or line in self._readers:
            return
        if line._expected:
            line.finish()  # usually statements travel together; here each has its own moment
        self._scheduler.pause(sql)
