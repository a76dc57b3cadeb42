"""Group commit: writes that arrive together share one commit, and each is still all or nothing.

Why this exists: a durable commit waits for the disk, and nearly all of the time of a write is that
wait. While one commit is under way, everything that arrives is queued; then all of it runs in the
next transaction, each item under a savepoint of its own, and waits for the disk once.

Without it every event commits alone. A prototype measured 326 workflows/s on SQLite and 250 on
PostgreSQL with group commit, 63 and 61 without
(docs/adr/0003-sqlite-and-postgresql-with-sync-transactions.md). A lone write waits for nobody.

What goes wrong stays with its item: see `commit_batch`, and docs/internals/group-commit.md.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError

from exclave.base.errors import Problem, Unavailable
from exclave.base.logs import Log
from exclave.base.loop_time import is_expected_long, note_step
from exclave.storage.engine import greenlets
from exclave.storage.engine.dialects.base import Session
from exclave.storage.engine.sessions import Sessions

if TYPE_CHECKING:
    from exclave.storage.engine.database import Tx

C = TypeVar("C")
R = TypeVar("R")
log = Log("storage")

Handler = Callable[["Tx", Sequence[C]], Sequence[R | Problem]]
"""Handles commands of one kind in order; returns the result or the problem of each.

A command whose problem is returned must have changed nothing. A handler that raises has all
its changes undone, and its commands are then run one by one.
"""

MOST_TOGETHER = 512
PATIENCE_S = 1.0
"""How long a `patient` write waits for another to share its commit with."""
MOST_OVERTAKING = 8
"""Batches of short items that overtake a long one at most."""
_TRIES = 4


@dataclass(slots=True)
class Item(Generic[C, R]):
    """A submitted command, and the future of its outcome."""

    handler: Handler[C, R]
    command: C
    future: "asyncio.Future[R] | None" = field(default=None)
    patient: bool = False
    """Whether it may wait for another item to share the commit with."""
    is_long: bool = field(default_factory=is_expected_long)
    """Whether it is expected to take long: others need not wait for it."""
    busy_s: float = 0.0
    """How long it held the event loop."""


Batch = list[Item[Any, Any]]


OpenTx = Callable[[Session], "Tx"]
Announce = Callable[["Tx"], None]
Wake = Callable[[list[str]], None]
Commit = Callable[[Batch], tuple[list[Any], list[str]]]


def commit_batch(
    sessions: Sessions, open_tx: OpenTx, announce: Announce, batch: Batch
) -> tuple[list[Any], list[str]]:
    """Run a batch in one transaction; return an outcome or an exception per item, and the wakes.

    When the transaction as a whole fails, nothing was committed, and each item is tried alone.
    So is an item whose rows clash with those of another writer: the next time it sees them, and
    raises the problem that a caller understands.
    """
    error: Exception
    for _ in range(_TRIES):
        try:
            with sessions.begin() as session:
                tx = open_tx(session)
                outcomes = _run_all(tx, batch)
                announce(tx)
                tx.session.commit()
            for callback in tx.callbacks:
                callback()
        except DBAPIError as failure:
            error = failure
            if not _is_worth_another_try(failure):
                break
            if len(batch) > 1:
                return _commit_one_by_one(sessions, open_tx, announce, batch)
        except _Refused as refused:
            return [refused.error], []
        else:
            return _repeat_raced(sessions, open_tx, announce, batch, outcomes, tx.wakes)
    if isinstance(error, IntegrityError):
        return [_translate(error)], []
    log.error("transaction_failed", exc=error, size=len(batch))
    return [_describe(error)] * len(batch), []


def _repeat_raced(
    sessions: Sessions,
    open_tx: OpenTx,
    announce: Announce,
    batch: Batch,
    outcomes: list[Any],
    wakes: list[str],
) -> tuple[list[Any], list[str]]:
    """Retry alone the items of a committed batch that clashed with another writer."""
    for position, outcome in enumerate(outcomes):
        if isinstance(outcome, IntegrityError):
            again, woken = commit_batch(sessions, open_tx, announce, [batch[position]])
            outcomes[position] = again[0]
            wakes = [*wakes, *woken]
    return outcomes, wakes


class Raced(Unavailable):
    """Other writers stored the same rows at the same moment, repeatedly; nothing was stored."""

    code = "raced"
    hint = "Try again in a moment."


class _Refused(Exception):  # noqa: N818 - carries the error of a lone item out of its transaction
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


def _run_all(tx: "Tx", batch: Batch) -> list[Any]:
    """Run a lone item without a savepoint: its failure rolls back the transaction itself."""
    if len(batch) > 1:
        return _run_groups(tx, batch)
    try:
        with _measure(batch):
            return list(batch[0].handler(tx, [batch[0].command]))
    except Exception as error:
        if isinstance(error, IntegrityError):
            raise
        if isinstance(error, DBAPIError) and _breaks_transaction(error):
            raise
        raise _Refused(error) from error


def _run_groups(tx: "Tx", batch: Batch) -> list[Any]:
    # Commands of one handler go as one call, wherever they stand in the batch.
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
    tx.savepoint()
    try:
        with _measure(group):
            outcomes = list(group[0].handler(tx, [item.command for item in group]))
            # Releasing waits for the answers of all statements of the group, so that an error in
            # one of them is raised here and not in the next group.
            tx.release()
    except Exception as error:
        if isinstance(error, DBAPIError) and _breaks_transaction(error):
            raise
        tx.rollback_to_savepoint()
        if len(group) == 1:
            return [error]
        return [outcome for item in group for outcome in _run_group(tx, [item])]
    return outcomes


@contextmanager
def _measure(group: Batch) -> Iterator[None]:
    """Add to each item its share of the time for which the group held the event loop."""
    began = greenlets.read_busy_time()
    try:
        yield
    finally:
        for item in group:
            item.busy_s += (greenlets.read_busy_time() - began) / len(group)


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
    """Return whether the whole transaction is lost: deadlock, lost connection, lock timeout."""
    return isinstance(error, OperationalError) or error.connection_invalidated


def _is_worth_another_try(error: DBAPIError) -> bool:
    """Return whether a retry is safe: the database refused, so nothing was committed."""
    if isinstance(error, IntegrityError):
        return True
    return isinstance(error, OperationalError) and not error.connection_invalidated


def _translate(error: IntegrityError) -> Exception:
    """Return the problem for a violated key that stayed violated after all tries."""
    log.warning("write_raced", error=str(error.orig))
    return Raced("this clashes with what somebody else just wrote")


def _describe(error: Exception) -> Exception:
    return Unavailable(f"the database does not answer: {type(error).__name__}")


class Writer:
    """Commits queued items in batches; what arrives during a commit is the next batch.

    An item that is expected to take long is committed alone, after the short ones: otherwise
    everything that arrived with it would wait for it.
    """

    def __init__(self, commit: Commit, wake: Wake) -> None:
        self._commit = commit
        self._wake = wake
        self._waiting: Batch = []
        self._working: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._overtaking = 0

    async def submit(self, item: Item[C, R]) -> R:
        """Queue an item and wait for its outcome.

        A cancelled caller does not undo its item: it may be committed, as with any lost reply.
        """
        loop = asyncio.get_running_loop()
        item.future = loop.create_future()
        self._waiting.append(item)
        if not item.patient:
            self._begin(loop)
        elif self._timer is None:
            self._timer = loop.call_later(PATIENCE_S, self._begin, loop)
        try:
            return await item.future
        finally:
            note_step(item.busy_s)

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Commit what is queued, patient items included."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._working is None or self._working.done():
            self._working = loop.create_task(self._work())

    async def _work(self) -> None:
        while self._waiting:
            if all(item.is_long for item in self._waiting):
                # Callers that were just answered go on first, and may send short items.
                await asyncio.sleep(0)
            batch = self._choose_batch()
            try:
                outcomes, wakes = await greenlets.run(lambda: self._commit(batch))  # noqa: B023 - awaited here
            except Exception as error:  # noqa: BLE001 - the edge of a unit of work
                log.error("commit_failed", exc=error, size=len(batch))
                outcomes, wakes = [error] * len(batch), []
            self._wake(wakes)
            for item, outcome in zip(batch, outcomes, strict=True):
                _answer(item.future, outcome)

    def _choose_batch(self) -> Batch:
        """Remove the next batch from the queue."""
        batch = [item for item in self._waiting if not item.is_long][:MOST_TOGETHER]
        if len(batch) == len(self._waiting):
            self._waiting.clear()
            return batch
        if not batch or self._overtaking >= MOST_OVERTAKING:
            batch = [next(item for item in self._waiting if item.is_long)]
            self._overtaking = 0
        else:
            self._overtaking += any(item.is_long for item in self._waiting)
        chosen = {id(item) for item in batch}
        self._waiting = [item for item in self._waiting if id(item) not in chosen]
        return batch


def _answer(future: "asyncio.Future[Any] | None", outcome: object) -> None:
    if future is None or future.done():
        return
    if isinstance(outcome, BaseException):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
