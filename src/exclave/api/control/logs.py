"""Logs of jobs: read, follow, search."""

import re
from collections.abc import AsyncGenerator
from typing import Annotated

from fastapi import Header, Request

from exclave.api.credentials import DepsOf, UserOf, admit_user
from exclave.api.ids import JobOf
from exclave.api.queries import LogOf, LogStreamOf, LogStreamQuery, QueueSearchOf, SearchOf
from exclave.api.routes import UserRoute, make_router
from exclave.api.streams import EventStream, open_stream, write_event
from exclave.base.id_forms import ID_PATTERN
from exclave.control.deps import Deps
from exclave.control.logs import logs, search
from exclave.domain.identity import User
from exclave.domain.jobs import JobId
from exclave.wire.logs import LogMatches, LogPage

router = make_router("/v1", "logs", UserRoute)

LastEventOf = Annotated[str, Header(alias="Last-Event-ID", max_length=64)]
_PLACE = re.compile(f"({ID_PATTERN}):([0-9]{{1,15}})")


@router.get("/jobs/{job}/logs")
async def read_log(job: JobOf, query: LogOf, user: UserOf, deps: DepsOf) -> LogPage:
    """Return records from an offset on; with `wait_s`, wait that long for the first."""
    return await logs.read_log(
        deps,
        user,
        job,
        execution=query.execution,
        offset=query.offset,
        limit=query.limit,
        wait_s=query.wait_s,
    )


@router.get("/jobs/{job}/logs/stream", response_class=EventStream)
async def follow_log(
    job: JobOf,
    query: LogStreamOf,
    user: UserOf,
    deps: DepsOf,
    request: Request,
    last: LastEventOf = "",
) -> EventStream:
    """Stream records of all attempts as events `record`; `end` once job and log are complete.

    The id of an event is its position; sent back as `Last-Event-ID`, the stream continues there.
    """
    at = _find_place(query, last)
    await logs.read_log(deps, user, job, execution=at.execution, offset=at.offset, limit=1)
    return open_stream(
        _write_records(deps, user, job, at),
        check=lambda: admit_user(deps, request),
        is_stopping=lambda: deps.hub.closed,
    )


@router.get("/jobs/{job}/logs/search")
async def search_job(job: JobOf, query: SearchOf, user: UserOf, deps: DepsOf) -> LogMatches:
    """Search the log of a job for a text, ignoring case."""
    return await search.search_job(deps, user, job, query.q, query.cursor)


@router.get("/logs/search")
async def search_logs(query: QueueSearchOf, user: UserOf, deps: DepsOf) -> LogMatches:
    """Search the logs of all jobs of an install for a text, newest attempts first."""
    return await search.search_queue(deps, user, query.queue_id, query.q, query.cursor)


def _find_place(query: LogStreamQuery, last: str) -> LogStreamQuery:
    known = _PLACE.fullmatch(last)
    if known is None:
        return query
    return LogStreamQuery(execution=known[1], offset=int(known[2]))


async def _write_records(
    deps: Deps, user: User, job: JobId, at: LogStreamQuery
) -> AsyncGenerator[bytes]:
    records = logs.follow_log(deps, user, job, execution=at.execution, offset=at.offset)
    async for record in records:
        event_id = f"{record.execution_id}:{record.offset}"
        yield write_event("record", record.model_dump_json(), event_id)
