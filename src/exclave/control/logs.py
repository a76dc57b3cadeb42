"""Job logs: append by offset, read, follow, search; segments are blobs, their index is a table."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import zstandard

from exclave.base.errors import Conflict, InvalidInput, NotFound, TooLarge
from exclave.control.deps import Deps
from exclave.control.jobs import find_job
from exclave.domain.identity import Right, RunnerIdentity, User
from exclave.domain.jobs import ExecutionId, ExecutionState, JobId, Superseded
from exclave.storage import executions, logs
from exclave.storage.database import AnyRow, Tx
from exclave.wire.logs import MAX_SEGMENT, LogPage, LogRecord, read_records
from exclave.wire.runner import LogReply

_LONGEST_WAIT_S = 15.0
_REST_WITHIN = timedelta(minutes=5)
_SEGMENTS = 200
"""Segments that are looked up at once."""


class WrongOffset(Conflict):
    """The stream continues elsewhere; the facts say where."""

    code = "log_offset"
    hint = "Go on at `next_offset`."


@dataclass(frozen=True, slots=True)
class Stream:
    """An execution's log as far as it is known."""

    execution: ExecutionId
    size: int
    closed: bool
    """Nothing more will come."""


async def append_log(
    deps: Deps, who: RunnerIdentity, execution: ExecutionId, epoch: int, offset: int, body: bytes
) -> LogReply:
    """Store a compressed piece that begins at `offset`: first the blob, then its index entry.

    What was stored before is not stored again, and a piece beyond the end is refused.
    """
    data = unpack(body)
    if not data.endswith(b"\n"):
        raise InvalidInput("a piece of log ends with a whole record")
    row = await deps.db.read(lambda tx: executions.find_execution(tx, who.org, execution))
    if row is None or row.runner_id != who.runner:
        raise NotFound("there is no such execution")
    if row.log_bytes != offset:
        raise WrongOffset("the stream continues elsewhere", next_offset=row.log_bytes)
    end = offset + len(data)
    blob = f"logs/{who.org}/{execution}/{offset:015d}-{deps.ids.new('seg')}.zst"
    await deps.blobs.put(blob, body)

    def index(tx: Tx) -> LogReply:
        held = (execution, epoch)
        if not executions.extend_log(tx, who.org, who.runner, held, offset=offset, end=end):
            raise _explain(executions.find_execution(tx, who.org, execution), epoch, offset)
        logs.add_segment(tx, who.org, execution, start=offset, end=end, blob=blob)
        tx.wake(f"log:{execution}")
        return LogReply(next_offset=end)

    try:
        return await deps.db.write(index, key=who.queue)
    except (WrongOffset, Superseded):
        await deps.blobs.delete(blob)
        raise


def unpack(body: bytes) -> bytes:
    """Decompress a piece of log without trusting it to be small."""
    try:
        reader = zstandard.ZstdDecompressor(max_window_size=1 << 23).stream_reader(body)
        data = reader.read(MAX_SEGMENT + 1)
    except zstandard.ZstdError as error:
        raise InvalidInput("the body is not zstd") from error
    if len(data) > MAX_SEGMENT:
        raise TooLarge(f"a piece of log has at most {MAX_SEGMENT} bytes", limit=MAX_SEGMENT)
    if not data:
        raise InvalidInput("the piece of log is empty")
    return data


async def read_log(
    deps: Deps, user: User, job: JobId, *, execution: str | None, offset: int, limit: int,
    wait_s: float = 0.0,
) -> LogPage:  # fmt: skip
    """Read records from an offset on; with `wait_s`, wait that long for the first of them."""
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
        if len(records) >= limit:
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
    while True:
        rows = await _list_segments(deps, user, execution, offset)
        for row in rows:
            try:
                data = unpack_stored(await deps.blobs.get(row.blob))
            except NotFound:
                break  # it was merged into another segment meanwhile: look again
            for record in read_records(execution, data[max(0, offset - row.start) :], offset):
                offset = record.offset
                yield record
        else:
            if len(rows) < _SEGMENTS:
                return


async def _list_segments(
    deps: Deps, user: User, execution: ExecutionId, offset: int
) -> Sequence[AnyRow]:
    return await deps.db.read(
        lambda tx: logs.list_segments(tx, user.org, execution, offset=offset, limit=_SEGMENTS)
    )


def unpack_stored(body: bytes) -> bytes:
    """Decompress a stored segment, which may be several pieces one after the other."""
    reader = zstandard.ZstdDecompressor().stream_reader(body, read_across_frames=True)
    return reader.read()


async def _find_stream(deps: Deps, user: User, job: JobId, execution: str | None) -> Stream | None:
    def find(tx: Tx) -> Stream | None:
        row = find_job(tx, user, job, Right.READ)
        attempts = executions.list_of_job(tx, user.org, JobId(row.id))
        if execution is not None:
            attempts = [a for a in attempts if a.id == execution]
            if not attempts:
                raise NotFound("the job has no such execution")
        started = [a for a in attempts if a.started_at is not None or a.log_bytes]
        return _describe(started[-1], tx.now) if started else None

    return await deps.db.read(find)


def _describe(row: AnyRow, now: datetime) -> Stream:
    """Judge a stream: after the end a missing rest is waited for, but not for ever."""
    ended = row.state == ExecutionState.ENDED
    whole = row.log_end is None or row.log_bytes >= row.log_end
    given_up = ended and now - row.ended_at > _REST_WITHIN
    return Stream(ExecutionId(row.id), row.log_bytes, ended and (whole or given_up))


async def _wait_for_stream(
    deps: Deps, user: User, job: JobId, execution: str | None
) -> Stream | None:
    """Wait until a job has begun to write; None if it ended without a word."""
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
    """Find the attempt after this one, waiting for it while the job has not ended."""
    with deps.hub.watch(f"job:{job}") as watch:
        while True:
            rows = await deps.db.read(lambda tx: executions.list_of_job(tx, user.org, job))
            reached = max(row.epoch for row in rows if row.id == current)
            later = [row for row in rows if row.epoch > reached and row.started_at is not None]
            if later:
                return ExecutionId(later[0].id)
            row = await deps.db.read(lambda tx: find_job(tx, user, job, Right.READ))
            if row.finished_at is not None or deps.hub.closed:
                return None
            await watch.wait(_LONGEST_WAIT_S)


def _explain(row: AnyRow | None, epoch: int, offset: int) -> Conflict | Superseded | NotFound:
    if row is None:
        return NotFound("there is no such execution")
    if row.epoch == epoch and row.log_bytes != offset:
        return WrongOffset("the stream continues elsewhere", next_offset=row.log_bytes)
    return Superseded("this execution may no longer write its log")
