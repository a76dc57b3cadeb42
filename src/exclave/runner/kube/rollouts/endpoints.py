"""How many endpoints of a Service were ready at worst while it was changed."""

from collections.abc import Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from exclave.base.clock import Clock
from exclave.base.json_values import JsonObject, list_or_empty, object_or_empty, text_or_empty
from exclave.runner.kube.api.client import ClusterClient
from exclave.runner.kube.api.discovery import Resource
from exclave.runner.kube.api.lists import Selection
from exclave.runner.kube.api.watch import Changed, Listed, Removed, WatchEvent

_SLICE: Final = Resource(
    "discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", namespaced=True
)
_SERVICE: Final = "kubernetes.io/service-name"


class Downtime(NamedTuple):
    """What happened to the endpoints of one Service."""

    service: str
    before: int
    lowest: int
    seconds: float

    @property
    def text(self) -> str:
        """The figure for people."""
        if self.lowest:
            figure = f"{self.lowest} of {self.before} ready at worst"
            return f"Service {self.service}: no downtime, {figure}"
        return f"Service {self.service}: no ready endpoint for {self.seconds:.1f} s"


@dataclass(slots=True)
class _Count:
    before: int = 0
    lowest: int = 0
    zero_since: float | None = None
    zero_s: float = 0.0


@dataclass(slots=True)
class EndpointWatch:
    """Counts the ready endpoints of the Services of one namespace."""

    client: ClusterClient
    clock: Clock
    namespace: str
    services: Collection[str]
    _slices: dict[str, tuple[str, int]] = field(default_factory=dict)
    _counts: dict[str, _Count] = field(default_factory=dict)

    async def follow(self) -> None:
        """Count until cancelled. Services that had no endpoint in the beginning do not count."""
        events = self.client.watch(_SLICE, Selection(self.namespace))
        async with aclosing(events) as stream:
            async for event in stream:
                self.see(event)

    def see(self, event: WatchEvent) -> None:
        """Count after an event."""
        match event:
            case Listed(objects):
                self._slices = {_name(value): _read_slice(value) for value in objects}
            case Changed(value):
                self._slices[_name(value)] = _read_slice(value)
            case Removed(value):
                self._slices.pop(_name(value), None)
        self._count()

    def summarize(self) -> Sequence[Downtime]:
        """Return the figures of all Services that had ready endpoints in the beginning."""
        now = self.clock.monotonic()
        return [
            Downtime(
                f"{self.namespace}/{service}",
                count.before,
                count.lowest,
                count.zero_s + (0.0 if count.zero_since is None else now - count.zero_since),
            )
            for service, count in sorted(self._counts.items())
            if count.before
        ]

    def _count(self) -> None:
        now = self.clock.monotonic()
        is_first = not self._counts
        for service in self.services:
            ready = sum(number for owner, number in self._slices.values() if owner == service)
            if is_first:
                self._counts[service] = _Count(ready, ready)
                continue
            count = self._counts[service]
            count.lowest = min(count.lowest, ready)
            if ready == 0 and count.zero_since is None:
                count.zero_since = now
            elif ready and count.zero_since is not None:
                count.zero_s += now - count.zero_since
                count.zero_since = None


def _read_slice(value: JsonObject) -> tuple[str, int]:
    """Return the Service of a slice and the number of its ready endpoints."""
    labels = object_or_empty(object_or_empty(value.get("metadata")).get("labels"))
    endpoints = [object_or_empty(entry) for entry in list_or_empty(value.get("endpoints"))]
    ready = sum(
        object_or_empty(endpoint.get("conditions")).get("ready") is not False
        for endpoint in endpoints
    )
    return text_or_empty(labels.get(_SERVICE)), ready


def _name(value: JsonObject) -> str:
    return text_or_empty(object_or_empty(value.get("metadata")).get("name"))
