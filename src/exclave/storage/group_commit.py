"""Group commit: requests that arrive together share one commit, yet each is all or nothing."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError

from exclave.base.errors import Conflict, Problem, Unavailable
from exclave.base.logs import Log
from exclave.storage.dialects.base import Session
from exclave.storage.sessions import Sessions

if TYPE_CHECKING:
    from exclave.storage.database import Tx

C = TypeVar("C")
R = TypeVar("R")
log = Log("storage")

Handler = Callable[["Tx", Sequence[C]], Sequence[R | Problem]]
"""Works off commands of one kind in order; answers each with its result or its problem.

A command that is answered with a problem must have changed nothing. A handler that raises has all
its changes undone, and its commands are then run one by one.
"""

MOST_TOGETHER = 512
PATIENCE_S = 0.25
_TRIES = 4


@dataclass(slots=True)
class Item(Generic[C, R]):
    """A submitted command and whoever waits for its outcome."""

    handler: Handler[C, R]
    command: C
    future: "asyncio.Future[R] | None" = field(default=None)
    patient: bool = False
    """Whether it may wait a moment for company."""


Batch = list[Item[Any, Any]]


OpenTx = Callable[[Session, datetime | None], "Tx"]
Announce = Callable[["Tx"], None]
Wake = Callable[[list[str]], None]


def commit_batch(
    sessions: Sessions, open_tx: OpenTx, announce: Announce, batch: Batch
) -> tuple[list[Any], list[str]]:
    """Run a batch in one transaction; answer an outcome or an exception per item, and the wakes.

    When the transaction as a whole fails, nothing of it happened, and each item is tried alone.
    """
    error: Exception
    for _ in range(_TRIES):
        try:
            with sessions.begin() as (session, now):
                tx = open_tx(session, now)
                outcomes = _run_all(tx, batch)
                announce(tx)
                session.commit()
        except DBAPIError as failure:
            error = failure
            if not _was_rolled_back(failure):
                break
            if len(batch) > 1:
                return _commit_one_by_one(sessions, open_tx, announce, batch)
        except _Refused as refused:
            return [_translate(refused.error)], []
        else:
            return outcomes, tx.wakes
    log.error("transaction_failed", exc=error, size=len(batch))
    return [_describe(error)] * len(batch), []


class Raced(Conflict):
    """Somebody else did the same at the same moment, and was first."""

    code = "raced"
    hint = "Look at what is there now, then try again if you still want to."


class _Refused(Exception):  # noqa: N818 - carries the error of a lone item out of its transaction
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


def _run_all(tx: "Tx", batch: Batch) -> list[Any]:
    """Run a lone item without a savepoint: its failure rolls back the transaction itself."""
    if len(batch) > 1:
        return _run_groups(tx, batch)
    try:
        return list(batch[0].handler(tx, [batch[0].command]))
    except Exception as error:
        if isinstance(error, DBAPIError) and _breaks_transaction(error):
            raise
        raise _Refused(error) from error


def _run_groups(tx: "Tx", batch: Batch) -> list[Any]:
    groups: dict[int, list[int]] = {}
    for position, item in enumerate(batch):
        groups.setdefault(id(item.handler), []).append(position)
    outcomes: list[Any] = [None] * len(batch)
    for positions in groups.values():
        answers = _run_group(tx, [batch[position] for position in positions])
        for position, answer in zip(positions, answers, strict=True):
            outcomes[position] = answer
    return outcomes


def _run_group(tx: "Tx", group: Batch) -> list[Any]:
    mark = len(tx.wakes)
    tx.session.set_mark()
    try:
        outcomes = list(group[0].handler(tx, [item.command for item in group]))
    except Exception as error:
        if isinstance(error, DBAPIError) and _breaks_transaction(error):
            raise
        tx.session.undo_to_mark()
        del tx.wakes[mark:]
        if len(group) == 1:
            return [_translate(error)]
        return [outcome for item in group for outcome in _run_group(tx, [item])]
    tx.session.drop_mark()
    return outcomes


def _commit_one_by_one(
    sessions: Sessions, open_tx: OpenTx, announce: Announce, batch: Batch
) -> tuple[list[Any], list[str]]:
    outcomes: list[Any] = []
    wakes: list[str] = []
    for item in batch:
        outcome, woken = commit_batch(sessions, open_tx, announce, [item])
        outcomes += outcome
        wakes += woken
    return outcomes, wakes


def _breaks_transaction(error: DBAPIError) -> bool:
    """Tell whether the transaction as a whole is gone: deadlock, lost connection, lock time-out."""
    return isinstance(error, OperationalError) or error.connection_invalidated


def _was_rolled_back(error: DBAPIError) -> bool:
    """Tell whether trying again is safe: the server said no, so nothing was committed."""
    return isinstance(error, OperationalError) and not error.connection_invalidated


def _translate(error: Exception) -> Exception:
    """Turn a broken unique or foreign key into what it means: two writers met."""
    if not isinstance(error, IntegrityError):
        return error
    log.warning("write_raced", error=str(error.orig))
    return Raced("this clashes with what somebody else just wrote")


def _describe(error: Exception) -> Exception:
    return Unavailable(f"the database does not answer: {type(error).__name__}")


class LoopWriter:
    """Runs statements on the event loop, where nobody competes for the interpreter.

    Only the commit, which waits for the disk, leaves the loop; what arrives meanwhile is the next
    batch. Made for an embedded database, whose statements take microseconds.
    """

    def __init__(self, sessions: Sessions, open_tx: OpenTx, announce: Announce, wake: Wake) -> None:
        self._sessions = sessions
        self._open_tx = open_tx
        self._announce = announce
        self._wake = wake
        self._committer = ThreadPoolExecutor(1, "committer")
        self._waiting: Batch = []
        self._working: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def submit(self, item: Item[C, R]) -> R:
        """Queue an item and wait for its outcome."""
        loop = asyncio.get_running_loop()
        item.future = loop.create_future()
        self._waiting.append(item)
        if not item.patient:
            self._begin(loop)
        elif self._timer is None:
            self._timer = loop.call_later(PATIENCE_S, self._begin, loop)
        return await item.future

    def stop(self) -> None:
        """Give the committing thread back; nothing may be waiting any more."""
        self._committer.shutdown()

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Work off what waits, the patient with the others."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._working is None or self._working.done():
            self._working = loop.create_task(self._work())

    async def _work(self) -> None:
        while self._waiting:
            batch = self._waiting[:MOST_TOGETHER]
            del self._waiting[:MOST_TOGETHER]
            try:
                outcomes, wakes = await self._commit(batch)
            except Exception as error:  # noqa: BLE001 - the edge of a unit of work
                log.error("commit_failed", exc=error, size=len(batch))
                outcomes, wakes = [error] * len(batch), []
            self._wake(wakes)
            futures = [item.future for item in batch]
            _answer([(f, o) for f, o in zip(futures, outcomes, strict=True) if f is not None])

    async def _commit(self, batch: Batch) -> tuple[list[Any], list[str]]:
        """Commit a batch beside the loop. If anything fails, all of it is undone and run again."""
        try:
            with self._sessions.begin() as (session, now):
                tx = self._open_tx(session, now)
                outcomes = _run_all(tx, batch)
                self._announce(tx)
                loop = asyncio.get_running_loop()
                await asyncio.shield(loop.run_in_executor(self._committer, session.commit))
        except (DBAPIError, _Refused):
            return commit_batch(self._sessions, self._open_tx, self._announce, batch)
        return outcomes, tx.wakes


class Writer:
    """One thread that commits what waits for it, as much as there is at a time."""

    def __init__(self, commit: Callable[[Batch], list[Any]], name: str) -> None:
        self._commit = commit
        self._queue: SimpleQueue[Item[Any, Any] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    async def submit(self, item: Item[C, R]) -> R:
        """Queue an item and wait for its outcome.

        A cancelled caller does not undo its item: it may be committed, as with any lost reply.
        """
        item.future = asyncio.get_running_loop().create_future()
        self._queue.put(item)
        return await item.future

    def stop(self) -> None:
        """Commit what is queued, then end the thread."""
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        while True:
            first = self._queue.get()
            if first is None:
                return
            batch, last = self._gather(first)
            self._settle(batch)
            if last:
                return

    def _gather(self, first: Item[Any, Any]) -> tuple[Batch, bool]:
        batch = [first]
        while len(batch) < MOST_TOGETHER and not self._queue.empty():
            item = self._queue.get()
            if item is None:
                return batch, True
            batch.append(item)
        return batch, False

    def _settle(self, batch: Batch) -> None:
        try:
            outcomes = self._commit(batch)
        except Exception as error:  # noqa: BLE001 - the edge of the thread: nobody else would see it
            log.error("commit_failed", exc=error, size=len(batch))
            outcomes = [error] * len(batch)
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any]]] = {}
        for item, outcome in zip(batch, outcomes, strict=True):
            if item.future is not None:
                by_loop.setdefault(item.future.get_loop(), []).append((item.future, outcome))
        for loop, answers in by_loop.items():
            if not loop.is_closed():
                loop.call_soon_threadsafe(_answer, answers)


def _answer(answers: "list[tuple[asyncio.Future[Any], Any]]") -> None:
    for future, outcome in answers:
        if future.done():
            continue
        if isinstance(outcome, BaseException):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
