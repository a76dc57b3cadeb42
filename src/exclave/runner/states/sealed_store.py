"""The sealed state of one workspace: read, written under a lock, kept until it is stored."""

import json
import re
from pathlib import Path
from typing import NamedTuple

from exclave.base.json_values import parse_object
from exclave.client.problems import RemoteProblem
from exclave.client.retry import RetryPolicy
from exclave.runner.control_plane.execution_api import Uplink
from exclave.runner.jobs.placeholders import STATE
from exclave.runner.secrets.sealing import Purpose, SealBroken, Sealer
from exclave.runner.states.unsent_state import forget_state, keep_state, note_lock
from exclave.wire.states import LockInfo, SealedState, StateHeader

PATIENT = RetryPolicy(first_s=0.2, longest_s=5.0)
"""During an apply, writes are retried until they arrive; the dead-man timer ends the wait."""

_SERIAL = re.compile(rb'("serial"\s*:\s*)\d+')


class OpenedState(NamedTuple):
    """A decrypted state and its header."""

    header: StateHeader
    data: bytes


class SealedStore:
    """The state of the workspace that an execution works on. What is in it is the caller's."""

    def __init__(self, workspace: str, *, uplink: Uplink, sealer: Sealer, folder: Path) -> None:
        self._workspace = workspace
        self._uplink = uplink
        self._sealer = sealer
        self._folder = folder
        self._purpose = Purpose(uplink.org_id, uplink.queue_id, workspace, STATE)
        self.refused: RemoteProblem | None = None
        """Why a state was refused; it is then kept on disk."""
        self.broken: SealBroken | None = None
        """Why the stored state cannot be opened."""

    async def read(self) -> OpenedState | None:
        """Return the newest state, decrypted; None if there is none yet."""
        state = await self._uplink.read_state(self._workspace, PATIENT)
        if state is None:
            return None
        try:
            data = align_serial(self._sealer.unseal(state.sealed, self._purpose), state.header)
        except SealBroken as problem:
            self.broken = problem
            raise
        return OpenedState(state.header, data)

    async def write(self, lock_id: str, header: StateHeader, data: bytes) -> None:
        """Seal a new version, keep it on disk, and only then send it, until it arrives."""
        state = SealedState(header=header, sealed=self._sealer.seal(data, self._purpose))
        keep_state(self._folder, self._workspace, lock_id, state)
        try:
            await self._uplink.write_state(self._workspace, lock_id, state, PATIENT)
        except RemoteProblem as problem:
            self.refused = problem
            raise
        forget_state(self._folder)

    async def lock(self, lock: LockInfo) -> None:
        """Acquire the lock."""
        note_lock(self._folder, self._workspace, lock.id)
        await self._uplink.lock_state(self._workspace, lock, PATIENT)

    async def unlock(self, lock_id: str) -> None:
        """Release the lock."""
        await self._uplink.unlock_state(self._workspace, lock_id, PATIENT)


def align_serial(data: bytes, header: StateHeader) -> bytes:
    """Return the state with the serial that it is stored under, if it fits the header.

    Only the digits change: to write the document anew would round the numbers in it.
    """
    try:
        document = parse_object(data, "the sealed state")
    except ValueError as error:
        raise _refuse(str(error)) from error
    inside = header.serial if header.sealed_serial is None else header.sealed_serial
    if (document.get("serial"), document.get("lineage")) != (inside, header.lineage):
        raise _refuse(f"the sealed state is at serial {document.get('serial')}, not {inside}")
    if inside == header.serial:
        return data
    wanted = {**document, "serial": header.serial}
    for match in _SERIAL.finditer(data):
        raised = b"%s%s%d%s" % (data[: match.start()], match[1], header.serial, data[match.end() :])
        if json.loads(raised) == wanted:
            return raised
    raise _refuse("the serial of the sealed state cannot be found")


def _refuse(message: str) -> SealBroken:
    return SealBroken(message, hint="See what is stored: `exclave installs tf-state versions`.")
