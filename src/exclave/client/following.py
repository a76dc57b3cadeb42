"""Following a workflow or a log live: by events where they get through, by polling where not."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from exclave.client.control_http import ControlCalls, part
from exclave.client.event_stream import EventLink, Patience, Trouble
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
    """How far a log was read; the empty one is its beginning."""

    execution: str = ""
    offset: int = 0

    @property
    def event_id(self) -> str:
        """Name the position as the stream does."""
        return f"{self.execution}:{self.offset}" if self.execution else ""

    def is_past(self, record: LogRecord) -> bool:
        """Tell whether the record was read before."""
        return record.execution_id == self.execution and record.offset <= self.offset


BEGIN = LogPosition()


async def follow_workflow(
    calls: ControlCalls, workflow_id: str, on_trouble: Trouble | None = None
) -> AsyncIterator[WorkflowReply]:
    """Yield the workflow now and after each change, until it is over."""
    path = f"/v1/workflows/{part(workflow_id)}"
    patience = Patience(calls, on_trouble)
    link = EventLink(calls, patience)
    last: WorkflowReply | None = None
    while last is None or last.state is WorkflowState.RUNNING:
        reply = await patience.insist(lambda: calls.get(WorkflowReply, path))
        if _is_news(last, reply):
            last = reply
            yield reply
        if reply.state is not WorkflowState.RUNNING:
            return
        if link.blocked:
            await calls.clock.sleep(POLL_S)
            continue
        async with aclosing(link.listen(f"{path}/stream", {"workflow", "end"})) as events:
            async for event in events:
                if event.name == "end":
                    break
                reply = _read(event, WorkflowReply)
                if _is_news(last, reply):
                    last = reply
                    yield reply
        await patience.breathe()


async def follow_log(
    calls: ControlCalls,
    job_id: str,
    start: LogPosition = BEGIN,
    on_trouble: Trouble | None = None,
) -> AsyncIterator[LogRecord]:
    """Yield the records after `start`, each once, until the job is over and its log is read."""
    path = f"/v1/jobs/{part(job_id)}"
    patience = Patience(calls, on_trouble)
    link = EventLink(calls, patience)
    position = start
    while not link.blocked:
        listening = link.listen(f"{path}/logs/stream", {"record", "end"}, position.event_id)
        async with aclosing(listening) as events:
            async for event in events:
                if event.name == "end":
                    return
                record = _read(event, LogRecord)
                if not position.is_past(record):
                    position = LogPosition(record.execution_id, record.offset)
                    yield record
        await patience.breathe()
    async for record in _poll_log(calls, path, patience, position):
        yield record


async def _poll_log(
    calls: ControlCalls, path: str, patience: Patience, position: LogPosition
) -> AsyncIterator[LogRecord]:
    quiet = 0
    while True:
        page = await patience.insist(partial(_get_page, calls, path, position))
        for record in page.records:
            yield record
        position = LogPosition(page.execution_id or position.execution, page.next_offset)
        quiet = 0 if page.records else quiet + 1
        if page.records and not page.complete:
            continue
        job = await patience.insist(lambda: calls.get(JobReply, path))
        later = _find_next_execution(job, position.execution)
        if later and (page.complete or quiet > 1):
            position, quiet = LogPosition(later), 0
        elif job.state.is_final and (page.complete or quiet > 1):
            return
        else:
            await calls.clock.sleep(POLL_S)


async def _get_page(calls: ControlCalls, path: str, at: LogPosition) -> LogPage:
    return await calls.get(
        LogPage,
        f"{path}/logs",
        execution=at.execution or None,
        offset=at.offset,
        wait_s=WAIT_S,
    )


def _find_next_execution(job: JobReply, execution: str) -> str:
    order = [each.id for each in sorted(job.executions, key=lambda each: each.offered_at)]
    if not execution:
        return order[0] if order else ""
    later = order[order.index(execution) + 1 :] if execution in order else []
    return later[0] if later else ""


def _is_news(last: WorkflowReply | None, reply: WorkflowReply) -> bool:
    return last is None or (reply.revision >= last.revision and reply != last)


def _read(event: ServerEvent, model: type[Model]) -> Model:
    try:
        return model.model_validate_json(event.data)
    except ValidationError as error:
        raise UnexpectedReply(f"the stream sent a `{event.name}` that cannot be read") from error
