"""The index of job logs as values: segments, and the executions that have a log."""

from typing import NamedTuple

from exclave.domain.identity import OrgId
from exclave.domain.jobs import ExecutionId, JobId


class LogSegment(NamedTuple):
    """A blob that holds a log's stream from `start` to `end`."""

    start: int
    end: int
    blob: str
    stored: int | None
    """Bytes of the blob; None if its size was never checked."""


class LoggedExecution(NamedTuple):
    """An execution that has a log, with its job's step."""

    id: ExecutionId
    job_id: JobId
    step_name: str


class UnmergedLog(NamedTuple):
    """A log whose segments are to be merged, from `merged_to` on."""

    org_id: OrgId
    id: ExecutionId
    merge_tries: int
    merged_to: int
