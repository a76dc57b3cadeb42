"""The journal of an apply as a file: what was changed, synced before the next change."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from exclave.base.clock import Clock
from exclave.base.errors import Problem
from exclave.base.logs import Log
from exclave.client.retry import RetryPolicy
from exclave.runner.control_plane.execution_api import Uplink
from exclave.runner.data_folder import sync_folder
from exclave.runner.jobs.context import JobContext
from exclave.runner.states.unsent_state import JOURNAL, send_journal

_log = Log("runner.journal")

_EVERY_S = 2.0
_ONCE = RetryPolicy(give_up_s=0.0)


class JournalFile:
    """A file with one line of JSON per event."""

    def __init__(self, folder: Path, workspace: str, mask: Callable[[str], str]) -> None:
        self._mask = mask
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._handle = os.open(folder / JOURNAL, flags, 0o600)
        self.events = 0
        """How many changes it tells of."""
        self.write({"type": "begin", "workspace": workspace})
        sync_folder(folder)

    def write(self, line: Mapping[str, str | None], *, sync: bool = True) -> None:
        """Append a line, with secrets masked and without fields that are None."""
        text = {key: self._mask(value) for key, value in line.items() if value is not None}
        os.write(self._handle, json.dumps(text, ensure_ascii=False).encode() + b"\n")
        if sync:
            os.fsync(self._handle)

    def end(self) -> None:
        """Record that the tool has ended and all of its output was read."""
        self.write({"type": "end"})

    def close(self) -> None:
        """Close the file."""
        os.close(self._handle)


JournalT = TypeVar("JournalT", bound=JournalFile)


@asynccontextmanager
async def keep_journal(
    context: JobContext, workspace: str, kind: type[JournalT]
) -> AsyncIterator[JournalT]:
    """Keep the journal of a job and upload it regularly while the block lasts.

    Its last line is written only if the block succeeds.
    """
    job = context.job
    journal = kind(job.folder, workspace, context.mask)
    sending = asyncio.create_task(_send_regularly(job.folder, job.uplink, context.clock))
    try:
        yield journal
        journal.end()
    finally:
        journal.close()
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


async def _send_regularly(folder: Path, uplink: Uplink, clock: Clock) -> None:
    """Upload the journal every few seconds while it grows; a failed upload is retried then."""
    while True:
        await clock.sleep(_EVERY_S)
        try:
            await asyncio.shield(send_journal(folder, uplink, _ONCE))
        except Problem as problem:
            _log.warning("journal_not_sent", code=problem.code)
