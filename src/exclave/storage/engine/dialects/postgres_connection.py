"""The two users of one PostgreSQL connection, SQLAlchemy's driver and our pipeline.

Both wait on the event loop (`greenlets`), never in a blocking call.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import psycopg
from psycopg import pq
from psycopg.abc import PQGen
from psycopg.errors import error_from_result
from psycopg.waiting import Ready, Wait

from exclave.storage.engine.dialects.failures import translate
from exclave.storage.engine.greenlets import can_wait, wait_for_socket

T = TypeVar("T")
Keep = Callable[[pq.abc.PGresult], None]

_GOOD = frozenset({pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK})


class LoopConnection(psycopg.Connection[Any]):
    """psycopg's connection, as SQLAlchemy uses it, that waits on the event loop."""

    def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        """Run a generator of the driver, waiting for the socket where it asks to."""
        if not can_wait() or timeout is not None:
            return super().wait(gen, interval, timeout)
        try:
            wanted = next(gen)
            while True:
                wait_for_socket(self.pgconn.socket, write=bool(wanted & Wait.W))
                wanted = gen.send(Ready.RW if wanted & Wait.W else Ready.R)
        except StopIteration as end:
            result: T = end.value
            return result


class Expected(NamedTuple):
    """A command that was sent and not yet answered."""

    sql: str
    name: bytes = b""
    """The statement that it prepares."""
    keep: Keep | None = None


_SYNC = Expected("")


class Pipeline:
    """Commands in libpq's pipeline mode: sent as they come, their answers read together.

    A round trip costs more than most statements. Commands whose answer nobody reads (inserts,
    updates, BEGIN) are sent with the next one whose answer is read, which raises their errors.
    """

    def __init__(self, connection: pq.abc.PGconn) -> None:
        self._pq = connection
        self._expected: deque[Expected] = deque()
        self._known: set[bytes] = set()

    @property
    def lost(self) -> bool:
        """Whether the connection is gone."""
        return self._pq.status != pq.ConnStatus.OK

    def check(self) -> None:
        """Raise if the database has closed the connection meanwhile; sends nothing."""
        try:
            self._pq.consume_input()  # may read a last message, such as a shutdown notice
            self._pq.consume_input()  # raises at the end of the stream behind it
        except psycopg.Error as error:
            raise self._give_up(error) from error

    def send(
        self, name: bytes, sql: str, bound: "Sequence[bytes | None]", keep: Keep | None = None
    ) -> None:
        """Send a statement, prepared under its name when the connection first runs it.

        `keep` gets its answer.
        """
        self._enter()
        if name not in self._known:
            self._pq.send_prepare(name, sql.encode())
            self._known.add(name)
            self._expected.append(Expected(sql, name))
        self._pq.send_query_prepared(name, bound)
        self._expected.append(Expected(sql, keep=keep))

    def say(self, sql: str) -> None:
        """Send a command without values or rows."""
        self._enter()
        self._pq.send_query_params(sql.encode(), None)
        self._expected.append(Expected(sql))

    def finish(self) -> pq.abc.PGresult | None:
        """Wait for all answers; return the last, or raise the first error."""
        self.push()
        last: pq.abc.PGresult | None = None
        failed: tuple[pq.abc.PGresult, str] | None = None
        try:
            while self._pq.flush():
                self._wait(write=True)
            while self._expected:
                item = self._expected.popleft()
                result = self._read_answer(item)
                if result is None:
                    continue
                if result.status in _GOOD:
                    last = result
                # After an error the server skips everything up to the sync, with this status.
                elif failed is None and result.status != pq.ExecStatus.PIPELINE_ABORTED:
                    failed = result, item.sql
        except psycopg.Error as error:
            raise self._give_up(error) from error
        if failed is not None:
            raise translate(error_from_result(failed[0]), psycopg.Error, failed[1], lost=self.lost)
        return last

    def push(self) -> None:
        """Send what is buffered, so that the database begins, without waiting."""
        if not self._expected or self.lost:
            return
        self._pq.pipeline_sync()
        self._expected.append(_SYNC)
        self._pq.flush()

    def leave(self) -> None:
        """Wait for all answers, and leave pipeline mode: the driver may use the connection."""
        if self._expected:
            self.finish()
        if not self.lost and self._pq.pipeline_status != pq.PipelineStatus.OFF:
            self._pq.exit_pipeline_mode()

    def _enter(self) -> None:
        if self._pq.pipeline_status == pq.PipelineStatus.OFF:
            self._pq.enter_pipeline_mode()

    def _read_answer(self, item: Expected) -> pq.abc.PGresult | None:
        result = self._read()
        if item is _SYNC:
            return None
        if result is None:
            raise psycopg.OperationalError("the connection was lost")
        while self._read() is not None:
            pass
        if result.status in _GOOD:
            if item.keep is not None:
                item.keep(result)
        elif item.name:
            self._known.discard(item.name)  # it was not prepared after all
        return result

    def _read(self) -> pq.abc.PGresult | None:
        while self._pq.is_busy():
            self._wait(write=False)
        return self._pq.get_result()

    def _wait(self, *, write: bool) -> None:
        wait_for_socket(self._pq.socket, write=write)
        self._pq.consume_input()

    def _give_up(self, error: psycopg.Error) -> Exception:
        """Return the error of a broken connection; the outcome of what was sent is unknown."""
        self._expected.clear()
        return translate(error, psycopg.Error, "", lost=True)
