"""The state of a workspace on the runner: decrypted, encrypted, and described without values."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exclave.base.secrets import Secret
from exclave.client.problems import RemoteProblem
from exclave.client.retry import RetryPolicy
from exclave.runner.control_plane.execution_api import Uplink
from exclave.runner.jobs.placeholders import STATE
from exclave.runner.logs.secret_spellings import is_maskable
from exclave.runner.logs.spool import LogWriter
from exclave.runner.secrets.sealing import Purpose, SealBroken, Sealer
from exclave.runner.terraform.serials import align_serial
from exclave.runner.terraform.unsent_state import forget_state, keep_state, note_lock
from exclave.wire.jobs import JsonValue
from exclave.wire.terraform import LockInfo, SealedState, StateHeader, StateResource

PATIENT = RetryPolicy(first_s=0.2, longest_s=5.0)
"""During an apply, writes are retried until they arrive; the dead-man timer ends the wait."""

_MOST_HIDDEN = 500


@dataclass(frozen=True, slots=True)
class State:
    """A decrypted state and its header."""

    header: StateHeader
    document: Mapping[str, Any]

    @property
    def outputs(self) -> Mapping[str, Any]:
        """Its outputs: by name `{"value": …, "sensitive": …}`."""
        outputs = self.document.get("outputs")
        return outputs if isinstance(outputs, dict) else {}


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
        self._remember_newest(state.header, data)
        return data

    async def write(self, lock_id: str, data: bytes) -> None:
        """Encrypt a new version, store it on disk, then upload it until it arrives."""
        header = describe_state(data, self._log.mask)
        self._remember_newest(header, data)
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

    def _remember_newest(self, header: StateHeader, data: bytes) -> None:
        self.newest = State(header, json.loads(data))
        hidden = list(dict.fromkeys(list_sensitive(self.newest.document)))[:_MOST_HIDDEN]
        if hidden:
            self._log.hide(Secret(value) for value in hidden)


def describe_state(data: bytes, mask: Callable[[str], str]) -> StateHeader:
    """Return the header of a state, without values except ids; `ValueError` if it is no state."""
    state = json.loads(data)
    return StateHeader(
        serial=state["serial"],
        lineage=state["lineage"],
        sha256=hashlib.sha256(data).hexdigest(),
        resources=list(_list_resources(state, mask)),
    )


def list_sensitive(state: Mapping[str, Any]) -> Iterator[str]:
    """Yield the strings in a state that Terraform marks as sensitive."""
    for output in (state.get("outputs") or {}).values():
        if output.get("sensitive"):
            yield from _list_texts(output.get("value"))
    for resource in state.get("resources") or ():
        for instance in resource.get("instances") or ():
            for path in instance.get("sensitive_attributes") or ():
                yield from _list_texts(_follow(instance.get("attributes"), path))


def _describe_restored(header: StateHeader) -> str:
    return f"the state of serial {header.sealed_serial} was restored, as serial {header.serial}"


def _list_resources(
    state: Mapping[str, Any], mask: Callable[[str], str]
) -> Iterator[StateResource]:
    for resource in state.get("resources") or ():
        if resource.get("mode") != "managed":
            continue
        base = f"{resource['type']}.{resource['name']}"
        base = f"{resource['module']}.{base}" if resource.get("module") else base
        for instance in resource.get("instances") or ():
            yield StateResource(
                address=mask(base + _write_key(instance.get("index_key"))),
                type=resource["type"],
                id=mask(_find_id(instance)),
            )


def _write_key(key: object) -> str:
    return "" if key is None else f"[{json.dumps(key, ensure_ascii=False)}]"


def _find_id(instance: Mapping[str, Any]) -> str:
    resource_id = (instance.get("attributes") or {}).get("id")
    hidden = any(
        _follow({"id": ""}, path) == "" for path in instance.get("sensitive_attributes") or ()
    )
    return resource_id if isinstance(resource_id, str) and not hidden else ""


def _follow(value: Any, path: Iterable[Mapping[str, Any]]) -> Any:
    for step in path:
        key = step.get("value")
        key = key.get("value") if isinstance(key, dict) else key
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _list_texts(value: JsonValue) -> Iterator[str]:
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
