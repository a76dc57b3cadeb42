"""Removal of objects: in reverse waves, each by its uid, until they are gone or say why not."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, NamedTuple

from exclave.base.clock import Clock
from exclave.base.json_values import JsonObject
from exclave.runner.kube.api.client import ClusterClient
from exclave.runner.kube.api.errors import ApiRefused, KindUnknown
from exclave.runner.kube.api.objects import ObjectId
from exclave.runner.kube.changes.ownership import read_uid
from exclave.runner.kube.changes.parallel import run_all
from exclave.runner.kube.changes.prune import list_finalizers
from exclave.runner.kube.changes.waves import find_wave, split_waves

_FIRST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 1.0


class Leftover(NamedTuple):
    """An object that does not go away."""

    id: ObjectId
    uid: str
    text: str


class RemovedObject(NamedTuple):
    """An object to remove, as it was approved."""

    id: ObjectId
    uid: str
    value: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Remover:
    """Removes objects of a cluster."""

    client: ClusterClient
    clock: Clock
    note: Callable[[str, ObjectId], None]
    """Called before each removal, with what happens and to which object."""

    async def remove_all(self, objects: Sequence[RemovedObject], *, until: float) -> list[Leftover]:
        """Remove objects, the last wave first; return those that are still there in the end."""
        leftovers: list[Leftover] = []
        for wave in reversed(split_waves(objects, _find_wave)):
            await run_all(wave, self._remove)
            leftovers += await self.wait_gone(wave, until=until)
        return leftovers

    async def wait_gone(self, objects: Sequence[RemovedObject], *, until: float) -> list[Leftover]:
        """Wait until objects are gone, at most until a moment of the monotonic clock."""
        left = list(objects)
        pause_s = _FIRST_PAUSE_S
        while True:
            found_now = await run_all(left, self._find)
            still = [entry for entry in found_now if entry is not None]
            if not still or self.clock.monotonic() >= until:
                return still
            left = [RemovedObject(entry.id, entry.uid) for entry in still]
            await self.clock.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _remove(self, entry: RemovedObject) -> None:
        self.note("delete", entry.id)
        try:
            await self.client.delete(entry.id, uid=entry.uid)
        except KindUnknown:
            return
        except ApiRefused as refused:
            # Recreated under the same name since it was planned: that object is not ours.
            if refused.status.code != HTTPStatus.CONFLICT:
                raise

    async def _find(self, entry: RemovedObject) -> Leftover | None:
        try:
            live = await self.client.get(entry.id)
        except KindUnknown:
            return None
        if live is None or read_uid(live) != entry.uid:
            return None
        names = list_finalizers(live)
        text = f"waits for finalizer {', '.join(names)}" if names else "is still there"
        return Leftover(entry.id, entry.uid, text)


def describe_leftovers(leftovers: Sequence[Leftover]) -> str:
    """Return what is left and what it waits for."""
    return "\n".join(f"{entry.id.address} {entry.text}" for entry in leftovers)


def _find_wave(entry: RemovedObject) -> int:
    return find_wave(entry.id, entry.value)
