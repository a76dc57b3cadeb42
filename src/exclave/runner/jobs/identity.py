"""The role that a job has in the customer's account, for its commands and for the runner."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from exclave.base.secrets import Secret
from exclave.runner.audit import Audit
from exclave.runner.jobs.workspace import Workspace
from exclave.runner.logs.spool import LogWriter
from exclave.runner.processes.cell import Cell
from exclave.wire.runner import Dispatch

IsOver = Callable[[], bool]
"""Returns whether the job may not act any more, although its commands may still run."""


class JobIdentity(Protocol):
    """A job's role: what its commands need to act as it, and what the runner needs for the job."""

    def prepare(self, workspace: Workspace) -> Mapping[str, str]:
        """Return the variables by which commands get credentials; none of them is one."""
        ...

    async def read_keys(self) -> tuple[str, Secret, Secret | None]:
        """Return keys of the role: access key, secret key, session token (AWS)."""
        ...

    async def read_token(self, resource: str = "") -> Secret:
        """Return a token of the role (Google Cloud, Azure)."""
        ...


class OpenIdentity(Protocol):
    """Opens the role of a job while the block lasts."""

    def __call__(
        self, dispatch: Dispatch, cell: Cell, log: LogWriter, is_over: IsOver
    ) -> AbstractAsyncContextManager[JobIdentity | None]:
        """Yield the role; None if the job has none. Raises `WorkFailed` if it may not run."""
        ...


def bind_no_identity(audit: Audit) -> OpenIdentity:
    """Return what gives jobs no roles."""
    del audit
    return open_no_identity


@asynccontextmanager
async def open_no_identity(
    dispatch: Dispatch, cell: Cell, log: LogWriter, is_over: IsOver
) -> AsyncIterator[JobIdentity | None]:
    """Yield nothing: on a machine of the customer's own, jobs have no roles."""
    del dispatch, cell, log, is_over
    yield None
