"""Query strings as models: an unknown parameter is an error, never ignored."""

from typing import Annotated

from fastapi import Query
from pydantic import Field, StringConstraints

from exclave.wire.jobs import JobState
from exclave.wire.model import Id
from exclave.wire.model import Request as Strict
from exclave.wire.runner import Count
from exclave.wire.workflows import WorkflowState

Cursor = Annotated[str, StringConstraints(pattern=r"^([a-z]{2,4}_[0-9a-z]{26})?$")]
LogCursor = Annotated[str, StringConstraints(pattern=r"^([a-z]{2,4}_[0-9a-z]{26}:[0-9]{1,15})?$")]
Needle = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00]*$")]


class PageQuery(Strict):
    """Which part of a list."""

    cursor: Cursor = ""
    limit: Annotated[int, Field(ge=1, le=200)] = 100


class RunnerQuery(PageQuery):
    """Which runners."""

    queue_id: Id | None = None


class WorkflowQuery(PageQuery):
    """Which workflows."""

    queue_id: Id | None = None
    state: WorkflowState | None = None


class JobQuery(PageQuery):
    """Which jobs."""

    queue_id: Id | None = None
    workflow_id: Id | None = None
    state: JobState | None = None


class LogQuery(Strict):
    """Which part of a job's log; without `execution` that of the latest attempt."""

    execution: Id | None = None
    offset: Count = 0
    limit: Annotated[int, Field(ge=1, le=10_000)] = 1000
    wait_s: Annotated[float, Field(ge=0, le=60)] = 0.0


class LogStreamQuery(Strict):
    """Where to begin following; `Last-Event-ID` has precedence."""

    execution: Id | None = None
    offset: Count = 0


class SearchQuery(Strict):
    """What to look for."""

    q: Needle
    cursor: LogCursor = ""


class QueueSearchQuery(SearchQuery):
    """What to look for in which install."""

    queue_id: Id


class AppendQuery(Strict):
    """Where a piece of log belongs, under which epoch."""

    offset: Count
    epoch: Count


PageOf = Annotated[PageQuery, Query()]
RunnersOf = Annotated[RunnerQuery, Query()]
WorkflowsOf = Annotated[WorkflowQuery, Query()]
JobsOf = Annotated[JobQuery, Query()]
LogOf = Annotated[LogQuery, Query()]
LogStreamOf = Annotated[LogStreamQuery, Query()]
SearchOf = Annotated[SearchQuery, Query()]
QueueSearchOf = Annotated[QueueSearchQuery, Query()]
AppendOf = Annotated[AppendQuery, Query()]
