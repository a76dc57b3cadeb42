"""The journal of an apply: which resources were started and finished, synced to disk."""

import asyncio
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from exclave.base.clock import Clock
from exclave.base.errors import Problem
from exclave.base.logs import Log
from exclave.client.retry import RetryPolicy
from exclave.runner.control_plane.execution_api import Uplink
from exclave.runner.data_folder import sync_folder
from exclave.runner.terraform.messages import Message
from exclave.runner.terraform.unsent_state import JOURNAL, send_journal

_log = Log("runner.journal")

_KINDS = frozenset({"planned_change", "apply_start", "apply_complete", "apply_errored"})
_EVERY_S = 2.0
_ONCE = RetryPolicy(give_up_s=0.0)


class Journal:
    """A file with one line of JSON per event: addresses and ids, never other values."""

    def __init__(self, folder: Path, workspace: str, mask: Callable[[str], str]) -> None:
        self._mask = mask
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._handle = os.open(folder / JOURNAL, flags, 0o600)
        self.events = 0
        self._write({"type": "begin", "workspace": workspace})
        sync_folder(folder)

    def note(self, message: Message) -> None:
        """Write a message down durably, if it is about a resource; called by the pump's thread.

        Terraform first lists everything that it plans to do. Those lines are not synced one by one:
        the first real change syncs them too.
        """
        resource = message.resource
        if message.type not in _KINDS or resource is None:
            return
        is_plan = message.type == "planned_change"
        line = {
            "type": message.type,
            "at": message.at,
            "addr": resource.address,
            "resource_type": resource.resource_type,
            "action": resource.action,
            "id_key": resource.id_key,
            "id_value": resource.id_value,
        }
        self._write(line, sync=not is_plan)
        self.events += not is_plan

    def end(self) -> None:
        """Record that Terraform exited and all of its output was read."""
        self._write({"type": "end"})

    def close(self) -> None:
        """Close the file."""
        os.close(self._handle)

    def _write(self, line: Mapping[str, str | None], *, sync: bool = True) -> None:
        text = {key: self._mask(value) for key, value in line.items() if value is not None}
        os.write(self._handle, json.dumps(text, ensure_ascii=False).encode() + b"\n")
        if sync:
            os.fsync(self._handle)


async def send_regularly(folder: Path, uplink: Uplink, clock: Clock) -> None:
    """Upload the journal every few seconds while it grows; a failed upload is retried then."""
    while True:
        await clock.sleep(_EVERY_S)
        try:
            await asyncio.shield(send_journal(folder, uplink, _ONCE))
        except Problem as problem:
            _log.warning("journal_not_sent", code=problem.code)
