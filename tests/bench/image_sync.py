"""What the sync of an image moves and takes, from the embedded registry into another one."""

import asyncio
import os
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from exclave.base.clock import SystemClock
from exclave.client.oci.client import OciClient
from exclave.client.oci.repository import OciRepository
from exclave.client.transport import Link, build_tls, open_transport
from exclave.runner.images.copy import CopyTally, ImageCopy
from exclave.runner.images.graph import read_graph
from exclave.runner.images.references import ImageName
from exclave.runner.images.registries import open_image_repository
from tests.bench.report import Measure, say
from tests.bench.seeding import seed_fleet
from tests.bench.servers import run_server
from tests.support.images import MadeImage, make_image, make_index, make_layer, push_image
from tests.support.registries import serve_registry
from tests.support.relays import Relay, open_relay
from tests.support.tools import need_tool

REPEATS = 5
GOAL_BYTES = 1.02
GOAL_WALL = 1.2
MB = 10**6
SOURCE = "apps/demo"
SHARED = (12 * MB, 3 * MB)
OWN = (9 * MB, 5 * MB, 2 * MB, 400_000)
"""The layers that both platforms share, and those that each has of its own: 48 MB in 12 blobs."""


@dataclass(frozen=True, slots=True)
class Registries:
    """The embedded registry, and the one that images are copied into."""

    source: str
    org: str
    token: str
    target: str
    folder: Path

    async def get_token(self) -> str:
        return self.token


def measure() -> Iterator[Measure]:
    """Copy an image for two platforms, again, with one layer changed; compare with crane."""
    with _open_registries() as registries:
        image, changed = _make_image(1), _make_image(2)
        for each in (image, changed):
            asyncio.run(_push(registries, each))
        _log_in_crane(registries)
        yield _measure_bytes(registries, image, changed)
        yield _measure_wall(registries, image)


def _measure_bytes(registries: Registries, image: MadeImage, changed: MadeImage) -> Measure:
    """Count on the wire what goes to the target, the three times together."""
    with open_relay(registries.target) as relay:
        first, again, last = (
            _sync_counted(registries, each.digest, relay) for each in (image, image, changed)
        )
    missing = [_list_blobs(image), set(), _list_blobs(changed) - _list_blobs(image)]
    ratio = (first[0] + again[0] + last[0]) / sum(len(blob) for blobs in missing for blob in blobs)
    is_lean = (again[1].moved, last[1].moved) == (0, 2)
    return Measure(
        "image_sync_bytes",
        ratio,
        "bytes sent per byte missing",
        f"<= {GOAL_BYTES}, 0 blobs the second time, 2 when a layer and the config changed",
        met=ratio <= GOAL_BYTES and is_lean,
        detail={
            "blobs": [tally.moved for _, tally in (first, again, last)],
            "missing": [sum(map(len, blobs)) for blobs in missing],
            "sent": [sent for sent, _ in (first, again, last)],
        },
    )


def _measure_wall(registries: Registries, image: MadeImage) -> Measure:
    """Take turns with crane, each time into a new repository."""
    ours, theirs = [], []
    for number in range(REPEATS + 1):
        began = time.perf_counter()
        asyncio.run(_sync(registries, image.digest, registries.target, f"ours-{number}"))
        ours.append(time.perf_counter() - began)
        began = time.perf_counter()
        _run_crane(registries, image.digest, f"crane-{number}")
        theirs.append(time.perf_counter() - began)
        say(f"  ours {ours[-1]:.3f} s, crane {theirs[-1]:.3f} s")
    # The first turn fills caches.
    wall, baseline = (sorted(times[1:])[REPEATS // 2] for times in (ours, theirs))
    return Measure(
        "image_sync_wall",
        wall,
        "s",
        f"<= {GOAL_WALL} times crane copy",
        met=wall <= GOAL_WALL * baseline,
        baseline=baseline,
        ratio=baseline / wall,
        detail={"baseline_is": "crane copy", "bytes": sum(SHARED) + 2 * sum(OWN), "blobs": 12},
    )


def _make_image(version: int) -> MadeImage:
    """Return an index of two images; between versions, the smallest layer of one differs."""
    shared = [make_layer(number, size) for number, size in enumerate(SHARED)]
    images = []
    for seed, platform in ((10, "linux/amd64"), (20, "linux/arm64")):
        own = [make_layer(seed + number, size) for number, size in enumerate(OWN)]
        if platform == "linux/amd64":
            own[-1] = make_layer(100 + version, OWN[-1])
        config = {"version": version} if platform == "linux/amd64" else {}
        images.append(make_image(*shared, *own, platform=platform, config=config))
    return make_index(*images)


def _list_blobs(image: MadeImage) -> set[bytes]:
    """Return the distinct blobs of an image and its children."""
    return {*image.blobs, *(blob for child in image.children for blob in _list_blobs(child))}


async def _push(registries: Registries, image: MadeImage) -> None:
    async with _open_source(registries) as source:
        await push_image(source, image, registries.folder)


def _sync_counted(registries: Registries, digest: str, relay: Relay) -> tuple[int, CopyTally]:
    relay.reset()
    tally = asyncio.run(_sync(registries, digest, relay.url, "counted"))
    return relay.up, tally


async def _sync(registries: Registries, digest: str, target: str, name: str) -> CopyTally:
    """Do what the executor of image jobs does."""
    where = ImageName(target.removeprefix("http://"), name)
    async with (
        _open_source(registries) as source,
        open_image_repository(Link(""), where, None, _ignore) as repository,
    ):
        graph = await read_graph(source, digest)
        return await ImageCopy(source, repository, _ignore, SystemClock()).run(graph, "x1")


def _ignore(told: object) -> None:
    """Drop a line of the log, or a token to mask."""


@asynccontextmanager
async def _open_source(registries: Registries) -> AsyncIterator[OciRepository]:
    link = Link(f"{registries.source}/{registries.org}")
    transport = open_transport(link, build_tls(link), 8)
    async with OciClient(link.url, registries.get_token, transport) as client:
        yield client.open_repository(SOURCE)


def _log_in_crane(registries: Registries) -> None:
    argv = ["auth", "login", registries.source.removeprefix("http://")]
    _call_crane(registries, *argv, "-u", "exclave", "-p", registries.token)


def _run_crane(registries: Registries, digest: str, name: str) -> None:
    source = f"{registries.source.removeprefix('http://')}/{registries.org}/{SOURCE}@{digest}"
    target = f"{registries.target.removeprefix('http://')}/{name}:x1"
    _call_crane(registries, "copy", source, target)


def _call_crane(registries: Registries, *words: str) -> None:
    env = {**os.environ, "DOCKER_CONFIG": str(registries.folder / "docker")}
    argv = [str(need_tool("crane")), *words]
    subprocess.run(argv, env=env, check=True, capture_output=True)


@contextmanager
def _open_registries() -> Iterator[Registries]:
    with tempfile.TemporaryDirectory(prefix="exclave-bench-") as name:
        folder = Path(name)
        url = f"sqlite:///{folder / 'exclave.db'}"
        seeded = seed_fleet(folder, url, 1)
        with run_server(folder, url) as server, serve_registry(folder / "target") as target:
            control = f"http://127.0.0.1:{server.control_port}"
            headers = {"Authorization": f"Bearer {seeded.api_token}"}
            with httpx.Client(base_url=control, headers=headers) as client:
                org = client.get("/v1/org").json()["id"]
                wish = {"repository": "*", "push": True}
                token = client.post("/v1/registry/tokens", json=wish).json()["password"]
            source = f"http://127.0.0.1:{server.runner_port}"
            yield Registries(source, org, token, target, folder)
