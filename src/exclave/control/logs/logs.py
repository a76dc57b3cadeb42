"""Job logs: append by offset, read, follow, search; segments are blobs, their index is a table."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import islice

from exclave.base.errors import Conflict, NotFound
from exclave.control.deps import Deps
from exclave.control.logs.pieces import read_piece, unpack_piece
from exclave.control.logs.stored_pieces import fetch_pieces, run_aside
from exclave.control.runtime.log_limits import check_bytes, check_pieces
from exclave.control.workflows.jobs import find_job
from exclave.domain.executions import Execution
from exclave.domain.identity import Right, RunnerIdentity, User
from exclave.domain.jobs import ExecutionId, JobId, Superseded
from exclave.domain.quotas import Stored
from exclave.storage import executions, logs
from exclave.storage.engine.database import Tx
from exclave.storage.usage import Account, Amount, note_growth
from exclave.wire.logs import LogPage, LogRecord
from exclave.wire.runner import LogReply

_LONGEST_WAIT_S = 15.0
_REST_WITHIN = timedelta(minutes=5)
_BATCH = 500
"""Records that are parsed at once."""
_PAGE_RECORDS = 2000
_PAGE_BYTES = 1 << 20
"""A page has at most so many records, and no more after so many bytes of the stream."""


class WrongOffset(Conflict):
    """The piece does not begin where the stored log ends; the facts say where that is."""

    code = "log_offset"
    hint = "Go on at `next_offset`."


@dataclass(frozen=True, slots=True)
class Stream:
    """The extent and state of an execution's log."""

    execution: ExecutionId
    size: int
    closed: bool
    """Nothing more will come."""


async def append_log(
    deps: Deps, who: RunnerIdentity, execution: ExecutionId, epoch: int, offset: int, body: bytes
) -> LogReply:
    """Store a compressed piece that begins at `offset`: first the blob, then its index entry.

    A piece that was stored before is not stored again; one beyond the end is refused.
    """
    row, now = await deps.db.read(
        lambda tx: (executions.find_execution(tx, who.org, execution), tx.now)
    )
    if row is None or row.runner_id != who.runner:
        raise NotFound("there is no such execution")
    if row.log_bytes != offset:
        raise WrongOffset("the stream continues elsewhere", next_offset=row.log_bytes)
    check_pieces(row, now, deps.log_limits)
    end = offset + len(await run_aside(len(body), lambda: unpack_piece(body)))
    check_bytes(end, deps.log_limits)
    blob = f"logs/{who.org}/{execution}/{offset:015d}-{deps.ids.new('seg')}.zst"
    await deps.blobs.put(blob, body)

    def index(tx: Tx) -> LogReply:
        held = (execution, epoch)
        if not executions.extend_log(tx, who.org, who.runner, held, offset=offset, end=end):
            raise _explain(executions.find_execution(tx, who.org, execution), epoch, offset)
        span = (offset, end)
        logs.add_segment(tx, who.org, execution, span, blob=blob, stored=len(body))
        note_growth(tx, Account(who.org, Stored.LOGS), Amount(end - offset, 1))
        tx.wake(f"log:{execution}")
        return LogReply(next_offset=end)

    try:
        return await deps.db.write(index, key=who.queue)
    except (WrongOffset, Superseded, NotFound):
        await deps.blobs.delete(blob)
        raise


async def read_log(
    deps: Deps,
    user: User,
    job: JobId,
    *,
    execution: str | None,
    offset: int,
    limit: int,
    wait_s: float = 0.0,
) -> LogPage:
    """Return records from an offset on; with `wait_s`, wait that long for the first of them."""
    stream = await _find_stream(deps, user, job, execution)
    if wait_s and (stream is None or (stream.size <= offset and not stream.closed)):
        key = f"job:{job}" if stream is None else f"log:{stream.execution}"
        with deps.hub.watch(key) as watch:
            await watch.wait(wait_s)
        stream = await _find_stream(deps, user, job, execution)
    if stream is None:
        return LogPage(execution_id=None, records=[], next_offset=0, complete=False)
    records: list[LogRecord] = []
    end = offset
    async for record in read_from(deps, user, stream.execution, offset):
        records.append(record)
        end = record.offset
        if len(records) >= min(limit, _PAGE_RECORDS) or end - offset >= _PAGE_BYTES:
            break
    complete = stream.closed and end >= stream.size
    return LogPage(
        execution_id=stream.execution, records=records, next_offset=end, complete=complete
    )


async def follow_log(
    deps: Deps, user: User, job: JobId, *, execution: str | None, offset: int
) -> AsyncIterator[LogRecord]:
    """Yield records as they arrive, over all attempts at the job, until the job has ended."""
    current = execution
    while True:
        stream = await _wait_for_stream(deps, user, job, current)
        if stream is None:
            return
        current = stream.execution
        with deps.hub.watch(f"log:{current}") as watch:
            async for record in read_from(deps, user, stream.execution, offset):
                offset = record.offset
                yield record
            fresh = await _find_stream(deps, user, job, current)
            if deps.hub.closed:
                return
            if fresh is None or (fresh.closed and offset >= fresh.size):
                following = await _next_execution(deps, user, job, current)
                if following is None:
                    return
                current, offset = following, 0
                continue
            if fresh.size <= offset:
                await watch.wait(_LONGEST_WAIT_S)


async def read_from(
    deps: Deps, user: User, execution: ExecutionId, offset: int
) -> AsyncIterator[LogRecord]:
    """Yield the stored records that begin at or after an offset."""
    async for piece in fetch_pieces(deps, user.org, execution, offset):
        read_batch = partial(_read_batch, read_piece(piece))
        while records := await run_aside(piece.end - piece.begin, read_batch):
            for record in records:
                yield record


def _read_batch(records: Iterator[LogRecord]) -> list[LogRecord]:
    return list(islice(records, _BATCH))


async def _find_stream(deps: Deps, user: User, job: JobId, execution: str | None) -> Stream | None:
    def find(tx: Tx) -> Stream | None:
        row = find_job(tx, user, job, Right.READ)
        attempts = executions.list_of_job(tx, user.org, row.id)
        if execution is not None:
            attempts = [a for a in attempts if a.id == execution]
            if not attempts:
                raise NotFound("the job has no such execution")
        started = [a for a in attempts if a.started_at is not None or a.log_bytes]
        return _describe(started[-1], tx.now) if started else None

    return await deps.db.read(find)


def _describe(execution: Execution, now: datetime) -> Stream:
    """Return the state of a log: after the end a missing rest is awaited for a limited time."""
    ended_at = execution.ended_at
    whole = execution.log_end is None or execution.log_bytes >= execution.log_end
    closed = ended_at is not None and (whole or now - ended_at > _REST_WITHIN)
    return Stream(execution.id, execution.log_bytes, closed)


async def _wait_for_stream(
    deps: Deps, user: User, job: JobId, execution: str | None
) -> Stream | None:
    """Wait for the first execution of a job with a log; None if the job ended without one."""
    with deps.hub.watch(f"job:{job}") as watch:
        while True:
            stream = await _find_stream(deps, user, job, execution)
            if stream is not None:
                return stream
            row = await deps.db.read(lambda tx: find_job(tx, user, job, Right.READ))
            if row.finished_at is not None or deps.hub.closed:
                return None
            await watch.wait(_LONGEST_WAIT_S)


async def _next_execution(deps: Deps, user: User, job: JobId, current: str) -> ExecutionId | None:
    """Return the next execution of the job, waiting for it while the job has not ended."""
    with deps.hub.watch(f"job:{job}") as watch:
        while True:
            attempts = await deps.db.read(lambda tx: executions.list_of_job(tx, user.org, job))
            reached = max(attempt.epoch for attempt in attempts if attempt.id == current)
            later = [a for a in attempts if a.epoch > reached and a.started_at is not None]
            if later:
                return later[0].id
            row = await deps.db.read(lambda tx: find_job(tx, user, job, Right.READ))
            if row.finished_at is not None or deps.hub.closed:
                return None
            await watch.wait(_LONGEST_WAIT_S)


def _explain(
    execution: Execution | None, epoch: int, offset: int
) -> Conflict | Superseded | NotFound:
    if execution is None:
        return NotFound("there is no such execution")
    if execution.epoch == epoch and execution.log_bytes != offset:
        return WrongOffset("the stream continues elsewhere", next_offset=execution.log_bytes)
    return Superseded("this execution may no longer write its log")
