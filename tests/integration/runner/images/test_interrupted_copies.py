"""Copies over a network that breaks: they go on where they were, and give up in the end."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from exclave.base.ids import SeededRandomness
from exclave.client.oci.client import OciClient
from exclave.client.oci.repository import OciRepository
from exclave.client.problems import Unreachable
from exclave.client.retry import RetryPolicy
from exclave.runner.images.copy import CopyTally, ImageCopy
from exclave.runner.images.graph import read_graph
from tests.support.images import make_image, make_layer, push_image
from tests.support.relays import Relay, open_relay
from tests.support.world import ManualClock

MB = 10**6
SIZE = 24 * MB
CUTS = [3 * MB] * 6
POLICY = RetryPolicy(first_s=20.0, longest_s=20.0, give_up_s=30.0)
"""The pauses after a few failures are longer in all than the time after which it gives up."""


@dataclass
class Route:
    """A copy by way of a relay at each end; pauses take no time."""

    source: OciRepository
    target: OciRepository
    source_relay: Relay
    target_relay: Relay
    clock: ManualClock
    folder: Path
    lines: list[str] = field(default_factory=list)

    async def push(self) -> str:
        image = make_image(make_layer(7, SIZE))
        await push_image(self.source, image, self.folder)
        self.source_relay.reset()
        return image.digest

    async def copy(self, digest: str) -> CopyTally:
        graph = await read_graph(self.source, digest)
        return await ImageCopy(self.source, self.target, self.lines.append, self.clock).run(graph)


@pytest.fixture
def relays(registry: str, other: str) -> Iterator[tuple[Relay, Relay]]:
    with open_relay(registry) as first, open_relay(other) as second:
        yield first, second


@pytest.fixture
async def route(
    relays: tuple[Relay, Relay], tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Route]:
    name, clock = request.node.name.replace("_", "-").partition("[")[0], ManualClock()
    randomness = SeededRandomness(3)
    clients = [
        OciClient(relay.url, policy=POLICY, clock=clock, randomness=randomness) for relay in relays
    ]
    async with clients[0], clients[1]:
        source, target = (client.open_repository(name) for client in clients)
        yield Route(source, target, *relays, clock, tmp_path)


async def test_a_download_that_breaks_often_goes_on_as_long_as_something_arrives(
    route: Route,
) -> None:
    digest = await route.push()
    began = route.clock.monotonic()
    route.source_relay.cuts = list(CUTS)

    tally = await route.copy(digest)

    assert (tally.moved, route.source_relay.broken) == (2, len(CUTS))
    assert route.clock.monotonic() - began > POLICY.give_up_s  # type: ignore[operator]
    assert route.source_relay.down < SIZE + len(CUTS) * 2 * MB
    assert any("cannot reach" in line and "; going on in " in line for line in route.lines)
    assert await route.target.has_manifest(digest)


async def test_an_upload_that_breaks_often_goes_on_where_it_was(route: Route) -> None:
    digest = await route.push()
    route.target_relay.cuts = list(CUTS)

    tally = await route.copy(digest)

    assert (tally.moved, route.target_relay.broken) == (2, len(CUTS))
    assert route.target_relay.up < SIZE + len(CUTS) * 2 * MB
    assert await route.target.has_manifest(digest)


async def test_both_ends_break_at_once(route: Route) -> None:
    digest = await route.push()
    route.source_relay.cuts = [MB, 4 * MB, 7 * MB, 2 * MB]
    route.target_relay.cuts = [2 * MB, 5 * MB, MB, 6 * MB]

    tally = await route.copy(digest)

    assert tally.moved_size == tally.size
    assert route.source_relay.broken == route.target_relay.broken == 4
    assert await route.target.has_manifest(digest)


@pytest.mark.parametrize("end", ["source", "target"])
async def test_a_copy_that_gets_nowhere_gives_up(route: Route, end: str) -> None:
    digest = await route.push()
    graph = await read_graph(route.source, digest)
    relay = route.source_relay if end == "source" else route.target_relay
    relay.cuts = [1] * 1000

    with pytest.raises(Unreachable):
        await ImageCopy(route.source, route.target, route.lines.append, route.clock).run(graph)

    assert relay.broken < 50
