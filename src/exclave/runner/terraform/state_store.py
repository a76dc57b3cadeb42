"""The state of a workspace on the runner: decrypted, encrypted, and described without values."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from exclave.base.json_values import Json
from exclave.base.secrets import Secret
from exclave.runner.control_plane.execution_api import Uplink
from exclave.runner.logs.secret_spellings import is_maskable
from exclave.runner.logs.spool import LogWriter
from exclave.runner.secrets.sealing import Sealer
from exclave.runner.states.sealed_store import SealedStore
from exclave.runner.terraform.state_document import Output, StateDocument, parse_state
from exclave.wire.states import LockInfo, StateHeader, StateResource

_MOST_HIDDEN = 500


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
        self._log = log
        self.sealed = SealedStore(workspace, uplink=uplink, sealer=sealer, folder=folder)
        self.newest: State | None = None

    async def read(self) -> bytes | None:
        """Return the newest state, decrypted; None if there is none yet."""
        opened = await self.sealed.read()
        if opened is None:
            return None
        if opened.header.sealed_serial is not None and self.newest is None:
            self._log.system(_describe_restored(opened.header))
        self._remember_newest(opened.header, parse_state(opened.data))
        return opened.data

    async def write(self, lock_id: str, data: bytes) -> None:
        """Store a new version."""
        document = parse_state(data)
        header = describe_state(document, data, self._log.mask)
        self._remember_newest(header, document)
        await self.sealed.write(lock_id, header, data)

    async def lock(self, lock: LockInfo) -> None:
        """Acquire the lock."""
        await self.sealed.lock(lock)

    async def unlock(self, lock_id: str) -> None:
        """Release the lock."""
        await self.sealed.unlock(lock_id)

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
