"""The journal of an apply: which resources were started and finished, synced to disk."""

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path

from exclave.base.clock import Clock
from exclave.base.errors import Problem
from exclave.base.logs import Log
from exclave.client.retry import RetryPolicy
from exclave.runner.control_plane.execution_api import Uplink
from exclave.runner.data_folder import sync_folder
from exclave.runner.terraform.messages import Event
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

    def note(self, event: Event) -> None:
        """Append an event about a resource, durably; called by the pump's thread.

        Terraform first lists everything that it plans to do. Those lines are not synced one by one:
        the first real change syncs them too.
        """
        is_plan = event.get("type") == "planned_change"
        hook = event.get("change" if is_plan else "hook")
        if event.get("type") not in _KINDS or not isinstance(hook, dict):
            return
        resource = hook.get("resource")
        told = resource if isinstance(resource, dict) else {}
        line = {
            "type": event["type"],
            "at": event.get("@timestamp"),
            "addr": told.get("addr"),
            "resource_type": told.get("resource_type"),
            "action": hook.get("action"),
            "id_key": hook.get("id_key"),
            "id_value": hook.get("id_value"),
        }
        self._write(line, sync=not is_plan)
        self.events += not is_plan

    def end(self) -> None:
        """Record that Terraform exited and all of its output was read."""
        self._write({"type": "end"})

    def close(self) -> None:
        """Close the file."""
        os.close(self._handle)

    def _write(self, line: dict[str, object], *, sync: bool = True) -> None:
        text = {key: self._mask(str(value)) for key, value in line.items() if value is not None}
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
