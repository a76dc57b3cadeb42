"""The state of a workspace on the runner: decrypted, encrypted, and described without values."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from exclave.base.json_values import Json, parse_object
from exclave.base.secrets import Secret
from exclave.client.problems import RemoteProblem
from exclave.client.retry import RetryPolicy
from exclave.runner.control_plane.execution_api import Uplink
from exclave.runner.jobs.placeholders import STATE
from exclave.runner.logs.secret_spellings import is_maskable
from exclave.runner.logs.spool import LogWriter
from exclave.runner.secrets.sealing import Purpose, SealBroken, Sealer
from exclave.runner.terraform.state_document import Output, StateDocument, parse_state
from exclave.runner.terraform.unsent_state import forget_state, keep_state, note_lock
from exclave.wire.terraform import LockInfo, SealedState, StateHeader, StateResource

PATIENT = RetryPolicy(first_s=0.2, longest_s=5.0)
"""During an apply, writes are retried until they arrive; the dead-man timer ends the wait."""

_MOST_HIDDEN = 500
_SERIAL = re.compile(rb'("serial"\s*:\s*)\d+')


@dataclass(frozen=True, slots=True)
class State:
    """The outputs of a decrypted state, and the facts of it that may be shown."""

    header: StateHeader
    outputs: Mapping[str, Output]


class StateStore:
    """The one workspace that an execution works on."""

    def __init__(
        self, workspace: str, *, uplink: Uplink, sealer: Sealer, folder: Path, log: LogWriter
    ) -> None:
        self._workspace = workspace
        self._uplink = uplink
        self._sealer = sealer
        self._folder = folder
        self._log = log
        self._purpose = Purpose(uplink.org_id, uplink.queue_id, workspace, STATE)
        self.newest: State | None = None
        self.refused: RemoteProblem | None = None
        """Why a state was refused; it is then kept on disk."""
        self.broken: SealBroken | None = None
        """Why the stored state cannot be opened."""

    async def read(self) -> bytes | None:
        """Return the newest state, decrypted; None if there is none yet."""
        state = await self._uplink.read_state(self._workspace, PATIENT)
        if state is None:
            return None
        try:
            data = align_serial(self._sealer.unseal(state.sealed, self._purpose), state.header)
        except SealBroken as problem:
            self.broken = problem
            raise
        if state.header.sealed_serial is not None and self.newest is None:
            self._log.system(_describe_restored(state.header))
        self._remember_newest(state.header, parse_state(data))
        return data

    async def write(self, lock_id: str, data: bytes) -> None:
        """Seal a new version, keep it on disk, and only then send it, until it arrives."""
        document = parse_state(data)
        header = describe_state(document, data, self._log.mask)
        self._remember_newest(header, document)
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

    def _remember_newest(self, header: StateHeader, document: StateDocument) -> None:
        self.newest = State(header, document.outputs)
        hidden = list(dict.fromkeys(list_sensitive(document)))[:_MOST_HIDDEN]
        if hidden:
            self._log.hide(Secret(value) for value in hidden)


def describe_state(document: StateDocument, data: bytes, mask: Callable[[str], str]) -> StateHeader:
    """Describe a state, given also as its bytes, without any of its values but ids."""
    return StateHeader(
        serial=document.serial,
        lineage=document.lineage,
        sha256=hashlib.sha256(data).hexdigest(),
        resources=[
            StateResource(
                address=mask(instance.address),
                type=resource.type,
                id=mask(instance.find_id()),
            )
            for resource in document.resources
            if resource.managed
            for instance in resource.instances
        ],
    )


def list_sensitive(document: StateDocument) -> Iterator[str]:
    """List the texts in a state that Terraform marks as sensitive and that are worth masking."""
    for output in document.outputs.values():
        if output.sensitive:
            yield from _list_texts(output.value)
    for resource in document.resources:
        for instance in resource.instances:
            for value in instance.list_sensitive_values():
                yield from _list_texts(value)


def _describe_restored(header: StateHeader) -> str:
    return f"the state of serial {header.sealed_serial} was restored, as serial {header.serial}"


def _list_texts(value: Json) -> Iterator[str]:
    match value:
        case str():
            if is_maskable(value):
                yield value
        case dict():
            for part in value.values():
                yield from _list_texts(part)
        case list():
            for part in value:
                yield from _list_texts(part)
        case _:
            pass


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
