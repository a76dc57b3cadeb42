"""Search logs for plain text, in one job or over an install, within a budget per call."""

from collections.abc import AsyncIterator, Sequence

from exclave.control.access import require_there
from exclave.control.deps import Deps
from exclave.control.logs.pieces import Budget, StoredPiece, scan_pieces
from exclave.control.logs.stored_pieces import fetch_pieces
from exclave.control.workflows.jobs import find_job
from exclave.domain.identity import Right, User
from exclave.domain.jobs import JobId
from exclave.domain.logs import LoggedExecution
from exclave.storage import executions, logs
from exclave.storage.engine.database import Tx
from exclave.wire.logs import LogMatch, LogMatches, LogRecord

_MATCHES = 100
_EXECUTIONS = 500
_RECORDS = 50_000
_PIECES = 2000
_BYTES = 32 << 20
"""Records, pieces and bytes that one call looks at before it hands back a cursor."""
_TEXT = 1 << 20
"""Characters of matches that one call hands back."""
_BATCH_PIECES = 256
_BATCH_BYTES = 4 << 20
"""Pieces that one call of a worker looks at."""
_SCAN_S = 5.0


async def search_job(
    deps: Deps, user: User, job: JobId, needle: str, cursor: str = ""
) -> LogMatches:
    """Return records of a job that contain the text, ignoring case."""

    def find(tx: Tx) -> list[LoggedExecution]:
        row = find_job(tx, user, job, Right.READ)
        attempts = executions.list_of_job(tx, user.org, job)
        return [
            LoggedExecution(attempt.id, job, row.step_name)
            for attempt in reversed(attempts)
            if attempt.log_bytes
        ]

    return await _search(deps, user, await deps.db.read(find), needle, cursor)


async def search_queue(
    deps: Deps, user: User, queue: str, needle: str, cursor: str = ""
) -> LogMatches:
    """Return records of all jobs of an install that contain the text, newest executions first."""
    await require_there(deps, user, Right.READ, queue)
    first = cursor.partition(":")[0]

    logged = await deps.db.read(
        lambda tx: logs.list_executions(tx, user.org, queue, before=first, limit=_EXECUTIONS + 1)
    )
    page = await _search(deps, user, logged[:_EXECUTIONS], needle, cursor)
    if page.next is None and len(logged) > _EXECUTIONS:
        return LogMatches(items=page.items, next=f"{logged[_EXECUTIONS].id}:0")
    return page


async def _search(
    deps: Deps, user: User, logged: Sequence[LoggedExecution], needle: str, cursor: str
) -> LogMatches:
    """Search in worker processes, some pieces at a time, one search of an org after the other."""
    wanted = needle.casefold()
    by_id: dict[str, LoggedExecution] = {execution.id: execution for execution in logged}
    matches: list[LogMatch] = []
    left = Budget(_RECORDS, _MATCHES, _TEXT)
    pieces = size = 0
    async with deps.log_turns.search(user.org):
        async for batch in _gather(_fetch(deps, user, logged, cursor)):
            scan = await deps.workers.run(
                user.org, scan_pieces, batch, wanted, left, seconds=_SCAN_S
            )
            matches += [_show(by_id[record.execution_id], record) for record in scan.matches]
            if scan.last is not None:
                at = scan.last
                return LogMatches(items=matches, next=f"{at.execution_id}:{at.offset}")
            left = scan.left
            pieces += len(batch)
            size += sum(piece.end - piece.begin for piece in batch)
            if pieces >= _PIECES or size >= _BYTES:
                return LogMatches(items=matches, next=f"{batch[-1].execution}:{batch[-1].end}")
    return LogMatches(items=matches)


async def _fetch(
    deps: Deps, user: User, logged: Sequence[LoggedExecution], cursor: str
) -> AsyncIterator[StoredPiece]:
    """Yield the pieces of all logs to search, from the cursor on."""
    at, _, start = cursor.partition(":")
    for execution in logged:
        if at and execution.id > at:
            continue
        offset = int(start) if execution.id == at and start.isdigit() else 0
        async for piece in fetch_pieces(deps, user.org, execution.id, offset):
            yield piece


async def _gather(pieces: AsyncIterator[StoredPiece]) -> AsyncIterator[list[StoredPiece]]:
    """Batch pieces into calls that are worth a round trip to a worker."""
    batch: list[StoredPiece] = []
    size = 0
    async for piece in pieces:
        batch.append(piece)
        size += piece.end - piece.begin
        if size >= _BATCH_BYTES or len(batch) >= _BATCH_PIECES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _show(execution: LoggedExecution, record: LogRecord) -> LogMatch:
    return LogMatch(
        job_id=execution.job_id,
        execution_id=execution.id,
        step=execution.step_name,
        record=record,
    )
