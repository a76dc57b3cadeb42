"""Group commit: requests that arrive together share one commit, yet each is all or nothing."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError

from exclave.base.errors import Problem, Unavailable
from exclave.base.logs import Log
from exclave.base.loop_time import note_step
from exclave.storage.engine import greenlets
from exclave.storage.engine.dialects.base import Session
from exclave.storage.engine.sessions import Sessions

if TYPE_CHECKING:
    from exclave.storage.engine.database import Tx

C = TypeVar("C")
R = TypeVar("R")
log = Log("storage")

Handler = Callable[["Tx", Sequence[C]], Sequence[R | Problem]]
"""Works off commands of one kind in order; answers each with its result or its problem.

A command that is answered with a problem must have changed nothing. A handler that raises has all
its changes undone, and its commands are then run one by one.
"""

MOST_TOGETHER = 512
PATIENCE_S = 1.0
"""How long a write may wait for company whose caller does not mind."""
_TRIES = 4


@dataclass(slots=True)
class Item(Generic[C, R]):
    """A submitted command and whoever waits for its outcome."""

    handler: Handler[C, R]
    command: C
    future: "asyncio.Future[R] | None" = field(default=None)
    patient: bool = False
    """Whether it may wait a moment for company."""
    busy_s: float = 0.0
    """For how long it held the event loop."""


Batch = list[Item[Any, Any]]


OpenTx = Callable[[Session], "Tx"]
Announce = Callable[["Tx"], None]
Wake = Callable[[list[str]], None]
Commit = Callable[[Batch], tuple[list[Any], list[str]]]


def commit_batch(
    sessions: Sessions, open_tx: OpenTx, announce: Announce, batch: Batch
) -> tuple[list[Any], list[str]]:
    """Run a batch in one transaction; answer an outcome or an exception per item, and the wakes.

    When the transaction as a whole fails, nothing of it happened, and each item is tried alone.
    So is an item whose rows clash with what another writer has just stored: the next time it sees
    them, and says what that means.
    """
    error: Exception
    for _ in range(_TRIES):
        try:
            with sessions.begin() as session:
                tx = open_tx(session)
                outcomes = _run_all(tx, batch)
                announce(tx)
                tx.session.commit()
            for deed in tx.deeds:
                deed()
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
    """Try items of a committed batch again, alone, that clashed with another writer."""
    for position, outcome in enumerate(outcomes):
        if isinstance(outcome, IntegrityError):
            again, woken = commit_batch(sessions, open_tx, announce, [batch[position]])
            outcomes[position] = again[0]
            wakes = [*wakes, *woken]
    return outcomes, wakes


class Raced(Unavailable):
    """Somebody else wrote the same at the same moment, time and again; nothing was stored."""

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
    tx.set_mark()
    try:
        with _measure(group):
            outcomes = list(group[0].handler(tx, [item.command for item in group]))
            tx.drop_mark()
    except Exception as error:
        if isinstance(error, DBAPIError) and _breaks_transaction(error):
            raise
        tx.undo_to_mark()
        if len(group) == 1:
            return [error]
        return [outcome for item in group for outcome in _run_group(tx, [item])]
    return outcomes


@contextmanager
def _measure(group: Batch) -> Iterator[None]:
    """Note for how long each item of a group holds the event loop, on average."""
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
    """Tell whether the transaction as a whole is gone: deadlock, lost connection, lock time-out."""
    return isinstance(error, OperationalError) or error.connection_invalidated


def _is_worth_another_try(error: DBAPIError) -> bool:
    """Tell whether trying again is safe: the server said no, so nothing was committed."""
    if isinstance(error, IntegrityError):
        return True
    return isinstance(error, OperationalError) and not error.connection_invalidated


def _translate(error: IntegrityError) -> Exception:
    """Turn a broken unique or foreign key into what it means: two writers met."""
    log.warning("write_raced", error=str(error.orig))
    return Raced("this clashes with what somebody else just wrote")


def _describe(error: Exception) -> Exception:
    return Unavailable(f"the database does not answer: {type(error).__name__}")


class Writer:
    """Commits what waits for it, as much as there is at a time; what arrives meanwhile is next."""

    def __init__(self, commit: Commit, wake: Wake) -> None:
        self._commit = commit
        self._wake = wake
        self._waiting: Batch = []
        self._working: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

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
                outcomes, wakes = await greenlets.run(lambda: self._commit(batch))  # noqa: B023 - awaited here
            except Exception as error:  # noqa: BLE001 - the edge of a unit of work
                log.error("commit_failed", exc=error, size=len(batch))
                outcomes, wakes = [error] * len(batch), []
            self._wake(wakes)
            for item, outcome in zip(batch, outcomes, strict=True):
                _answer(item.future, outcome)


def _answer(future: "asyncio.Future[Any] | None", outcome: object) -> None:
    if future is None or future.done():
        return
    if isinstance(outcome, BaseException):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
