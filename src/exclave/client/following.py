"""Follow a workflow or a log live: by event streams, or by polling where streams are blocked."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from exclave.client.control_http import ControlHttp, part
from exclave.client.event_stream import EventStream, OnOutage, Reconnect
from exclave.client.problems import UnexpectedReply
from exclave.client.sse import ServerEvent
from exclave.wire.jobs import JobReply
from exclave.wire.logs import LogPage, LogRecord
from exclave.wire.workflows import WorkflowReply, WorkflowState

Model = TypeVar("Model", bound=BaseModel)

POLL_S = 1.0
WAIT_S = 15.0


@dataclass(frozen=True, slots=True)
class LogPosition:
    """A position in the log of a job; the empty one is its beginning."""

    execution: str = ""
    offset: int = 0

    @property
    def event_id(self) -> str:
        """Return the position as an SSE event id."""
        return f"{self.execution}:{self.offset}" if self.execution else ""

    def is_past(self, record: LogRecord) -> bool:
        """Return whether the record is at or before this position."""
        return record.execution_id == self.execution and record.offset <= self.offset


BEGIN = LogPosition()


async def follow_workflow(
    http: ControlHttp, workflow_id: str, on_outage: OnOutage | None = None
) -> AsyncIterator[WorkflowReply]:
    """Yield the workflow now and after each change, until it has ended."""
    path = f"/v1/workflows/{part(workflow_id)}"
    reconnect = Reconnect(http, on_outage)
    stream = EventStream(http, reconnect)
    last: WorkflowReply | None = None
    while last is None or last.state is WorkflowState.RUNNING:
        reply = await reconnect.call(lambda: http.get(WorkflowReply, path))
        if _is_change(last, reply):
            last = reply
            yield reply
        if reply.state is not WorkflowState.RUNNING:
            return
        if stream.blocked:
            await http.clock.sleep(POLL_S)
            continue
        async with aclosing(stream.read(f"{path}/stream", {"workflow", "end"})) as events:
            async for event in events:
                if event.name == "end":
                    break
                reply = _parse(event, WorkflowReply)
                if _is_change(last, reply):
                    last = reply
                    yield reply
        await reconnect.pause()


async def follow_log(
    http: ControlHttp,
    job_id: str,
    start: LogPosition = BEGIN,
    on_outage: OnOutage | None = None,
) -> AsyncIterator[LogRecord]:
    """Yield each record after `start` once, until the job has ended and its log is complete."""
    path = f"/v1/jobs/{part(job_id)}"
    reconnect = Reconnect(http, on_outage)
    stream = EventStream(http, reconnect)
    position = start
    while not stream.blocked:
        reading = stream.read(f"{path}/logs/stream", {"record", "end"}, position.event_id)
        async with aclosing(reading) as events:
            async for event in events:
                if event.name == "end":
                    return
                record = _parse(event, LogRecord)
                if not position.is_past(record):
                    position = LogPosition(record.execution_id, record.offset)
                    yield record
        await reconnect.pause()
    async for record in _poll_log(http, path, reconnect, position):
        yield record


async def _poll_log(
    http: ControlHttp, path: str, reconnect: Reconnect, position: LogPosition
) -> AsyncIterator[LogRecord]:
    empty_polls = 0
    while True:
        page = await reconnect.call(partial(_get_page, http, path, position))
        for record in page.records:
            yield record
        position = LogPosition(page.execution_id or position.execution, page.next_offset)
        empty_polls = 0 if page.records else empty_polls + 1
        if page.records and not page.complete:
            continue
        job = await reconnect.call(lambda: http.get(JobReply, path))
        later = _find_next_execution(job, position.execution)
        if later and (page.complete or empty_polls > 1):
            position, empty_polls = LogPosition(later), 0
        elif job.state.is_final and (page.complete or empty_polls > 1):
            return
        else:
            await http.clock.sleep(POLL_S)


async def _get_page(http: ControlHttp, path: str, at: LogPosition) -> LogPage:
    return await http.get(
        LogPage,
        f"{path}/logs",
        execution=at.execution or None,
        offset=at.offset,
        wait_s=WAIT_S,
    )


def _find_next_execution(job: JobReply, execution: str) -> str:
    order = [
        attempt.id for attempt in sorted(job.executions, key=lambda attempt: attempt.offered_at)
    ]
    if not execution:
        return order[0] if order else ""
    later = order[order.index(execution) + 1 :] if execution in order else []
    return later[0] if later else ""


def _is_change(last: WorkflowReply | None, reply: WorkflowReply) -> bool:
    return last is None or (reply.revision >= last.revision and reply != last)


def _parse(event: ServerEvent, model: type[Model]) -> Model:
    try:
        return model.model_validate_json(event.data)
    except ValidationError as error:
        raise UnexpectedReply(f"the stream sent a `{event.name}` that cannot be parsed") from error
