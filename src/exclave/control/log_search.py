"""Searching logs: plain text, in one job or over an install, within a budget per call."""

from exclave.control.access import require_there
from exclave.control.deps import Deps
from exclave.control.jobs import find_job
from exclave.control.logs import read_from
from exclave.domain.identity import Right, User
from exclave.domain.jobs import ExecutionId, JobId
from exclave.storage import executions, logs
from exclave.storage.database import AnyRow, Tx
from exclave.wire.logs import LogMatch, LogMatches

_MATCHES = 100
_EXECUTIONS = 500
_RECORDS = 500_000
"""Records that one call looks at before it hands back a cursor."""


async def search_job(
    deps: Deps, user: User, job: JobId, needle: str, cursor: str = ""
) -> LogMatches:
    """Find records of a job that contain the text, ignoring case."""

    def find(tx: Tx) -> list[tuple[str, str, str | None]]:
        row = find_job(tx, user, job, Right.READ)
        attempts = executions.list_of_job(tx, user.org, job)
        return [(a.id, job, row.step_name) for a in reversed(attempts) if a.log_bytes]

    return await _search(deps, user, await deps.db.read(find), needle, cursor)


async def search_queue(
    deps: Deps, user: User, queue: str, needle: str, cursor: str = ""
) -> LogMatches:
    """Find records of all jobs of an install that contain the text, newest executions first."""
    await require_there(deps, user, Right.READ, queue)
    first = cursor.partition(":")[0]

    def find(tx: Tx) -> list[tuple[str, str, str | None]]:
        rows = logs.list_executions(tx, user.org, queue, before=first, limit=_EXECUTIONS + 1)
        return [_place(row) for row in rows]

    places = await deps.db.read(find)
    found = await _search(deps, user, places[:_EXECUTIONS], needle, cursor)
    if found.next is None and len(places) > _EXECUTIONS:
        return LogMatches(items=found.items, next=f"{places[_EXECUTIONS][0]}:0")
    return found


async def _search(
    deps: Deps, user: User, places: list[tuple[str, str, str | None]], needle: str, cursor: str
) -> LogMatches:
    wanted = needle.casefold()
    at, _, start = cursor.partition(":")
    matches: list[LogMatch] = []
    looked = 0
    for execution, job, step in places:
        if at and execution > at:
            continue
        offset = int(start) if execution == at and start.isdigit() else 0
        async for record in read_from(deps, user, ExecutionId(execution), offset):
            looked += 1
            if wanted in record.text.casefold():
                matches.append(
                    LogMatch(job_id=job, execution_id=execution, step=step, record=record)
                )
            if len(matches) >= _MATCHES or looked >= _RECORDS:
                return LogMatches(items=matches, next=f"{execution}:{record.offset}")
    return LogMatches(items=matches)


def _place(row: AnyRow) -> tuple[str, str, str | None]:
    return row.id, row.job_id, row.step_name
