"""The control plane and the runner with one guard taken out, to see whether anybody notices."""

import asyncio
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

from sqlalchemy import Engine, event, update

from exclave.base.errors import Problem
from exclave.control.background import sweeper
from exclave.control.deps import Deps
from exclave.control.dispatch import completion, executions, polls
from exclave.control.progress import cancel_jobs, step_jobs
from exclave.control.progress.workflow_events import make_end_event
from exclave.control.workflows import jobs
from exclave.domain import jobs as domain_jobs
from exclave.domain.executions import OpenExecution, ResultReceipt
from exclave.domain.identity import OrgId
from exclave.domain.jobs import ExecutionState, JobEnding, JobId, JobState, Reason, Silence
from exclave.runner import audit
from exclave.runner.control_plane import access_token
from exclave.runner.control_plane.identity import save_identity
from exclave.runner.executions import execution as runner_executions
from exclave.runner.executions import outbox, stop
from exclave.runner.logs import job_log
from exclave.storage import executions as stored
from exclave.storage import jobs as stored_jobs
from exclave.storage import queues
from exclave.storage.engine.database import Tx
from exclave.storage.engine.dialects.sqlite_session import SqliteSession
from exclave.storage.tables.work import executions as execution_rows
from exclave.storage.tables.work import jobs as job_rows
from exclave.wire.runner import Poll, PollReply

Patch = tuple[object, str, Any]
_COUNT = itertools.count()


@dataclass(frozen=True, slots=True)
class Mutant:
    """A guard that is missing."""

    name: str
    patches: tuple[Patch, ...] = ()
    rewrite: tuple[str, str] | None = None
    """A piece of SQL, and what is sent in its place."""

    @contextmanager
    def alive(self) -> Iterator[None]:
        """Take the guard out for a while."""
        with ExitStack() as undo:
            for place, name, value in self.patches:
                undo.enter_context(patch.object(place, name, value))
            if self.rewrite is not None:
                undo.enter_context(_rewriting(*self.rewrite))
            yield


@contextmanager
def _rewriting(old: str, new: str) -> Iterator[None]:
    def rewrite(_1: object, _2: object, sql: str, values: object, *_3: object) -> Any:
        return sql.replace(old, new), values

    def run(self: SqliteSession, sql: str, bound: Sequence[Any] = ()) -> Any:
        return run_as_written(self, sql.replace(old, new), bound)

    run_as_written = SqliteSession._run
    event.listen(Engine, "before_cursor_execute", rewrite, retval=True)
    try:
        with patch.object(SqliteSession, "_run", run):
            yield
    finally:
        event.remove(Engine, "before_cursor_execute", rewrite)


def _end_any(
    tx: Tx,
    org: OrgId,
    held: stored.Held,
    expected: object,
    reason: Reason,
    receipt: ResultReceipt | None = None,
) -> bool:
    mine = (execution_rows.c.org_id == org, execution_rows.c.id == held[0])
    known = {
        "state": ExecutionState.ENDED,
        "ended_at": tx.now,
        "reason": reason,
        "result_digest": receipt and receipt.digest,
        "log_end": receipt and receipt.log_end,
    }
    return tx.run(update(execution_rows).where(*mine).values(known)).rowcount == 1


def _reopen_first(end_job: Callable[..., Any]) -> Callable[..., Any]:
    def end_again(tx: Tx, org: OrgId, job: JobId, *args: Any, **known: Any) -> Any:
        ended = (job_rows.c.id == job, job_rows.c.finished_at.is_not(None))
        tx.run(update(job_rows).where(*ended).values(state=JobState.RUNNING))
        return end_job(tx, org, job, *args, **known)

    return end_again


def _forget_nonce(begin: Callable[..., PollReply]) -> Callable[..., PollReply]:
    def begin_poll(tx: Tx, deps: Deps, who: Any, request: Poll) -> PollReply:
        fresh = deps.ids.token("pn")[:40]
        return begin(tx, deps, who, request.model_copy(update={"nonce": fresh}))

    return begin_poll


def _end_all_missing(
    tx: Tx, deps: Deps, open_ones: Sequence[OpenExecution], boot: int, no: int, alive: Sequence[str]
) -> None:
    for row in open_ones:
        if row.state == ExecutionState.RUNNING and row.id not in alive:
            completion.end_interrupted(tx, deps, row, Reason.RUNNER_STOPPED_IT, stored.OPEN)


def _offer_again(reason: Reason, *, mutating: bool, **known: Any) -> JobEnding:
    return domain_jobs.end_unfinished(reason, mutating=False, **known)


def _leave_lanes_free(reason: Reason, *, mutating: bool, **known: Any) -> JobEnding:
    ending = domain_jobs.end_unfinished(reason, mutating=mutating, **known)
    return JobEnding(ending.state, ending.reason, blocks_lanes=False)


async def _never(*_: object) -> None:
    await asyncio.get_running_loop().create_future()


async def _begin_without_leave(deps: Any, execution: Any, dispatch: Any) -> Any:
    async def ask() -> None:
        try:
            await runner_executions._send_start(deps, execution)
        except Problem:
            return

    execution.confirmed_at = deps.clock.monotonic()
    deps.spawn(ask(), "asking")
    return runner_executions.Leave.GRANTED


def _cancel_at_once(tx: Tx, org: OrgId, job: JobId) -> Any:
    row = stored_jobs.find_job(tx, org, job, lock=True)
    if row is None or row.state.is_final:
        return None
    stored_jobs.request_cancel(tx, org, job)
    stored_jobs.end_job(tx, org, job, JobState.CANCELLED, reason=Reason.CANCELLED)
    tx.wake(f"cancel:{row.queue_id}")
    return make_end_event(row, JobState.CANCELLED, reason=Reason.CANCELLED)


def _count_from_last_renewal(now: datetime, since: datetime, **known: Any) -> Silence:
    return domain_jobs.find_silence(now, datetime.fromtimestamp(0, UTC), **known)


def _never_silent(now: datetime, since: datetime, **known: Any) -> Silence:
    return Silence(now, since)


def _leave_out(event: str) -> Callable[..., None]:
    write_all = audit.Audit.write

    def write(self: audit.Audit, name: str, **facts: object) -> None:
        if name != event:
            write_all(self, name, **facts)

    return write


def _remember_then_save(self: access_token.Session, **changes: object) -> None:
    self.identity = self.identity.model_copy(update=changes)
    save_identity(self._disk, self.identity)


NO_FENCE = Mutant(
    "no epoch check",
    rewrite=("> execution_lanes.epoch", "> execution_lanes.epoch AND 1 = 0"),
)
NO_STATE_CHECK = Mutant(
    "an ended execution may end again",
    ((stored, "end", _end_any),),
)
NO_FINAL_GUARD = Mutant(
    "a final state may change", ((stored_jobs, "end_job", _reopen_first(stored_jobs.end_job)),)
)
NO_GUARD_AT_ALL = Mutant("both", NO_STATE_CHECK.patches + NO_FINAL_GUARD.patches)
NO_NONCE = Mutant(
    "polls are not idempotent", ((polls, "_begin_poll", _forget_nonce(polls._begin_poll)),)
)
NO_RESULT_DIGEST = Mutant(
    "results are not idempotent", ((executions, "digest_json", lambda _: f"result-{next(_COUNT)}"),)
)
NO_OUTBOX = Mutant(
    "the outbox is not read at start", ((outbox.Outbox, "list_waiting", lambda _: []),)
)
NO_DEADMAN = Mutant(
    "no dead-man timer",
    ((runner_executions, "watch_deadman", _never), (stop, "is_unconfirmed", lambda *_: False)),
)
NO_ORDER_OF_PROOF = Mutant(
    "an old list proves a stop",
    ((polls, "end_stopped", _end_all_missing), (executions, "end_stopped", _end_all_missing)),
)
OFFERS_CHANGES_AGAIN = Mutant(
    "lost changes are offered again", ((completion, "end_unfinished", _offer_again),)
)
NO_RECONCILE = Mutant(
    "lost changes leave their lanes free", ((completion, "end_unfinished", _leave_lanes_free),)
)
NO_LEAVE = Mutant(
    "work begins without leave", ((runner_executions, "_ask_permission", _begin_without_leave),)
)
NO_LANES = Mutant(
    "lanes are never busy",
    ((queues, "list_busy_lanes", lambda *_: []),),
    rewrite=("lanes.state !=", "NULL !="),
)
NO_SWEEP = Mutant("silence is never given up", ((sweeper, "find_silence", _never_silent),))
CANCEL_AT_ONCE = Mutant(
    "a cancel is final before the runner stopped",
    (
        (cancel_jobs, "end_unstarted_job", _cancel_at_once),
        (jobs, "end_unstarted_job", _cancel_at_once),
    ),
)
NO_START_GRACE = Mutant(
    "timers go on while the server is down",
    ((sweeper, "find_silence", _count_from_last_renewal),),
)
NO_AUDIT = Mutant(
    "work begins without an audit entry", ((audit.Audit, "write", _leave_out("job_started")),)
)
NO_MASKING = Mutant("secrets are not masked", ((job_log.JobLog, "hide", lambda *_: None),))
MEMORY_FIRST = Mutant(
    "a token's generation is in memory before it is on disk",
    ((access_token.Session, "_save", _remember_then_save),),
)
NO_DIGEST = Mutant(
    "an approval is not bound to a digest", ((step_jobs, "approved_digest", lambda *_: None),)
)
ALL = (
    NO_FENCE, NO_STATE_CHECK, NO_FINAL_GUARD, NO_GUARD_AT_ALL, NO_NONCE, NO_RESULT_DIGEST,
    NO_OUTBOX, NO_DEADMAN, NO_ORDER_OF_PROOF, OFFERS_CHANGES_AGAIN, NO_RECONCILE, NO_LEAVE,
    NO_LANES, NO_SWEEP, CANCEL_AT_ONCE, NO_START_GRACE, NO_AUDIT, NO_MASKING,
    MEMORY_FIRST, NO_DIGEST,
)  # fmt: skip
