"""Copying images between real registries: what moves, what is skipped, what goes wrong."""

import asyncio
import json
import re
import tracemalloc
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from exclave.base.clock import SystemClock
from exclave.client.oci.client import OciClient
from exclave.client.oci.documents import CorruptContent
from exclave.client.oci.repository import OciRepository
from exclave.client.problems import RemoteProblem
from exclave.client.retry import RetryPolicy
from exclave.runner.images.copy import ImageCopy
from exclave.runner.images.graph import read_graph
from exclave.runner.outcomes import WorkFailed
from tests.support.images import (
    MadeImage,
    describe,
    digest_of,
    make_image,
    make_index,
    make_layer,
    make_referrer,
    push_image,
)

POLICY = RetryPolicy(first_s=0.01, longest_s=0.05, give_up_s=5.0)
SBOM = "application/spdx+json"
Answer = Callable[[httpx.Request, httpx.Response], httpx.Response | None]
"""Returns what is answered instead of a response, or nothing to leave it as it is."""


class Network(httpx.AsyncBaseTransport):
    """A real connection that counts requests and can answer in the place of the registry."""

    def __init__(self) -> None:
        self.inner = httpx.AsyncHTTPTransport()
        self.seen: list[str] = []
        self.headers: list[httpx.Headers] = []
        self.change: Answer | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.seen.append(f"{request.method} {request.url.raw_path.decode()}")
        self.headers.append(request.headers)
        response = await self.inner.handle_async_request(request)
        changed = None if self.change is None else self.change(request, response)
        return response if changed is None else changed

    async def aclose(self) -> None:
        await self.inner.aclose()

    def count(self, method: str, part: str) -> int:
        return sum(each.startswith(method) and part in each for each in self.seen)


class CutStream(httpx.AsyncByteStream):
    """The beginning of an answer; then the connection breaks."""

    def __init__(self, response: httpx.Response, after: int) -> None:
        self._response = response
        self._after = after

    async def __aiter__(self) -> AsyncIterator[bytes]:
        assert isinstance(self._response.stream, httpx.AsyncByteStream)
        left = self._after
        async for chunk in self._response.stream:
            yield chunk[:left]
            left -= len(chunk)
            if left <= 0:
                raise httpx.ReadError("cut")

    async def aclose(self) -> None:
        await self._response.aclose()


@dataclass
class Bench:
    """Two repositories in two registries, and the connections to them."""

    source: OciRepository
    target: OciRepository
    source_net: Network
    target_net: Network
    folder: Path
    lines: list[str] = field(default_factory=list)

    async def push(self, image: MadeImage, tag: str = "") -> str:
        return await push_image(self.source, image, self.folder.parent, tag)

    async def copy(self, digest: str, tag: str = "", platforms: tuple[str, ...] = ()) -> ImageCopy:
        image = await read_graph(self.source, digest, platforms=platforms)
        made = ImageCopy(self.source, self.target, self.lines.append, SystemClock())
        await made.run(image, tag)
        return made


@pytest.fixture
async def bench(
    registry: str, other: str, tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Bench]:
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name).strip("-")
    folder = tmp_path / "copy"
    folder.mkdir()
    source_net, target_net = Network(), Network()
    async with (
        OciClient(registry, None, source_net, policy=POLICY) as first,
        OciClient(other, None, target_net, policy=POLICY) as second,
    ):
        source = first.open_repository(f"{name}/vendor")
        target = second.open_repository(f"{name}/customer")
        yield Bench(source, target, source_net, target_net, folder)


def make_graph() -> MadeImage:
    """Return an index of two images that share a layer."""
    shared = make_layer(1, 50_000)
    amd = make_image(shared, make_layer(2, 5_000_000), platform="linux/amd64")
    arm = make_image(shared, make_layer(3), platform="linux/arm64/v8")
    return make_index(amd, arm)


async def test_an_index_is_copied_with_all_that_belongs_to_it(bench: Bench) -> None:
    index = make_graph()
    await bench.push(index)
    note = make_referrer(index, b"sbom", SBOM)
    signature = make_referrer(note, b"signature of the sbom", "application/x-signature")
    inner = make_referrer(index.children[1], b"provenance", "application/vnd.in-toto+json")
    for each in (note, signature, inner):
        await bench.push(each)

    copy = await bench.copy(index.digest, "x1")

    assert (await bench.target.fetch_manifest("x1")).data == index.data
    assert [each.digest for each in await bench.target.list_referrers(index.digest)] == [
        note.digest
    ]
    assert (await bench.target.list_referrers(note.digest))[0].digest == signature.digest
    child = index.children[1].digest
    assert (await bench.target.list_referrers(child))[0].digest == inner.digest
    assert copy.tally.moved == copy.tally.blobs == 8
    assert bench.lines[-1] == "8 of 8 blobs, 5.1 MB of 5.1 MB copied; 0 there already"
    assert list(bench.folder.iterdir()) == []


async def test_a_second_copy_moves_nothing(bench: Bench) -> None:
    index = make_graph()
    await bench.push(index)
    await bench.push(make_referrer(index, b"sbom", SBOM))
    await bench.copy(index.digest, "x1")
    bench.target_net.seen.clear()

    copy = await bench.copy(index.digest, "x1")

    assert (copy.tally.moved, copy.tally.manifests) == (0, 0)
    assert bench.lines[-1] == "0 of 6 blobs, 0 B of 5.1 MB copied; 6 there already"
    assert not any(line.startswith(("PUT", "POST", "PATCH")) for line in bench.target_net.seen)


async def test_only_the_layer_that_changed_moves(bench: Bench) -> None:
    base = make_layer(1, 50_000)
    await bench.push(make_image(base, make_layer(2)))
    await bench.copy(make_image(base, make_layer(2)).digest)
    changed = make_image(base, make_layer(9, 700), config={"created": "later"})
    await bench.push(changed)

    copy = await bench.copy(changed.digest)

    assert (copy.tally.moved, copy.tally.blobs) == (2, 3)
    assert copy.tally.moved_size == 700 + len(changed.blobs[0])


async def test_a_download_that_breaks_goes_on_where_it_was(bench: Bench) -> None:
    layer = make_layer(7, 6_000_000)
    image = make_image(layer)
    await bench.push(image)
    cuts = [3_000_000]

    def cut(request: httpx.Request, response: httpx.Response) -> httpx.Response | None:
        if not (request.method == "GET" and request.url.path.endswith(digest_of(layer)) and cuts):
            return None
        stream = CutStream(response, cuts.pop())
        return httpx.Response(response.status_code, headers=response.headers, stream=stream)

    bench.source_net.change = cut

    copy = await bench.copy(image.digest)

    ranges = [each["Range"] for each in bench.source_net.headers if "Range" in each]
    assert len(ranges) == 1
    assert 0 < int(ranges[0].removeprefix("bytes=").removesuffix("-")) <= 3_000_000
    assert copy.tally.moved == 2
    assert await bench.target.has_manifest(image.digest)


@pytest.mark.parametrize(
    ("status", "headers", "told"),
    [(503, {}, "going on in 0."), (429, {"Retry-After": "1"}, "going on in 1.0 s")],
    ids=["busy", "limited"],
)
async def test_a_registry_that_is_busy_is_asked_again_when_it_says(
    bench: Bench, status: int, headers: dict[str, str], told: str
) -> None:
    image = make_image(make_layer(21, 5_000_000))
    await bench.push(image)
    busy = {"GET", "POST", "PATCH"}

    def refuse(request: httpx.Request, response: httpx.Response) -> httpx.Response | None:
        if "/blobs/" not in request.url.path or request.method not in busy:
            return None
        busy.remove(request.method)
        return httpx.Response(status, headers=headers, stream=httpx.ByteStream(b"later"))

    bench.source_net.change = bench.target_net.change = refuse

    copy = await bench.copy(image.digest)

    assert busy == set()
    assert sum(told in line for line in bench.lines) == 3
    assert copy.tally.moved == 2
    assert await bench.target.has_manifest(image.digest)


async def test_changed_bytes_are_not_stored(bench: Bench) -> None:
    layer = make_layer(8, 2000)
    image = make_image(layer)
    await bench.push(image)

    def change(request: httpx.Request, response: httpx.Response) -> httpx.Response | None:
        if request.method == "GET" and request.url.path.endswith(digest_of(layer)):
            return httpx.Response(200, stream=httpx.ByteStream(b"x" * 2000))
        return None

    bench.source_net.change = change

    with pytest.raises(CorruptContent):
        await bench.copy(image.digest, "x1")

    assert not await bench.target.has_manifest("x1")
    assert not await bench.target.has_blob(digest_of(layer))
    assert list(bench.folder.iterdir()) == []


async def test_a_child_that_the_target_only_claims_to_have_is_copied_after_all(
    bench: Bench,
) -> None:
    index = make_graph()
    await bench.push(index)
    child = index.children[0].digest

    def lie(request: httpx.Request, response: httpx.Response) -> httpx.Response | None:
        if request.method == "HEAD" and request.url.path.endswith(child):
            return httpx.Response(200)
        return None

    bench.target_net.change = lie

    copy = await bench.copy(index.digest, "x1")

    assert (await bench.target.fetch_manifest("x1")).digest == index.digest
    assert any("everything is looked at again" in line for line in bench.lines)
    assert copy.tally.moved == 5


async def test_blobs_of_the_same_registry_are_mounted(bench: Bench) -> None:
    image = make_image(make_layer(4, 5_000_000), make_layer(5))
    await bench.push(image)
    neighbour = OciRepository(bench.source.calls, f"{bench.source.path}-copy")

    copy = ImageCopy(bench.source, neighbour, bench.lines.append, SystemClock())
    await copy.run(await read_graph(bench.source, image.digest))

    assert (copy.tally.moved, copy.tally.mounted) == (0, 3)
    assert await neighbour.has_manifest(image.digest)
    assert "3 taken from another repository" in bench.lines[-1]


async def test_a_registry_that_does_not_mount_is_asked_once(bench: Bench) -> None:
    image = make_image(make_layer(4), make_layer(5))
    await bench.push(image)
    neighbour = OciRepository(bench.source.calls, f"{bench.source.path}-copy")
    source = OciRepository(bench.source.calls, f"{bench.source.path}-without-anything")
    graph = await read_graph(bench.source, image.digest)

    copy = ImageCopy(source, neighbour, bench.lines.append, SystemClock())
    with pytest.raises(RemoteProblem, match="refused GET"):
        await copy.run(graph)

    # Three blobs were on their way when the first answer came.
    assert bench.source_net.count("POST", f"{neighbour.path}/blobs/uploads/?mount=") <= 3
    assert copy.tally.mounted == 0
    assert bench.lines == []


async def test_the_image_itself_under_the_fallback_tag_is_no_referrer(bench: Bench) -> None:
    index = make_graph()
    await bench.push(index)
    # GitLab answers so: the tag `sha256-<hex>` means the image.
    await bench.push(index, index.digest.replace(":", "-"))

    await bench.copy(index.digest)

    assert await bench.source.list_referrers(index.digest) == []
    assert await bench.target.has_manifest(index.digest)


async def test_layers_that_no_registry_stores_are_left_out(bench: Bench) -> None:
    foreign = describe(
        make_layer(6),
        "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip",
        urls=["https://example.com/layer"],
    )
    plain = make_image(make_layer(5))
    document = json.loads(plain.data)
    document["layers"].append(foreign)
    image = MadeImage(json.dumps(document).encode(), blobs=plain.blobs)
    await bench.push(image)

    copy = await bench.copy(image.digest)

    assert copy.tally.moved == 2


async def test_one_platform_is_copied_as_its_manifest(bench: Bench) -> None:
    index = make_graph()
    await bench.push(index)

    image = await read_graph(bench.source, index.digest, platforms=("linux/arm64",))
    await bench.copy(index.digest, "arm", ("linux/arm64",))

    assert image.digest == index.children[1].digest
    assert (await bench.target.fetch_manifest("arm")).digest == image.digest
    assert not await bench.target.has_manifest(index.digest)


async def test_several_platforms_get_an_index_of_their_own(bench: Bench) -> None:
    other = make_image(make_layer(11), platform="linux/s390x")
    index = make_index(*make_graph().children, other)
    await bench.push(index)
    wanted = ("linux/amd64", "linux/arm64/v8")

    image = await read_graph(bench.source, index.digest, platforms=wanted)
    again = await read_graph(bench.source, index.digest, platforms=wanted)
    await bench.copy(index.digest, "two", wanted)

    assert image.digest == again.digest != index.digest
    assert (await bench.target.fetch_manifest("two")).digest == image.digest
    assert image.platforms == ["linux/amd64", "linux/arm64/v8"]
    assert not await bench.target.has_manifest(other.digest)


async def test_a_platform_that_is_not_there_is_named_with_those_that_are(bench: Bench) -> None:
    index = make_graph()
    await bench.push(index)

    with pytest.raises(WorkFailed, match="no variant for `linux/riscv64`; it has: linux/amd64"):
        await read_graph(bench.source, index.digest, platforms=("linux/riscv64",))


async def test_a_large_blob_is_in_memory_in_small_pieces_only(bench: Bench) -> None:
    image = make_image(make_layer(30, 30_000_000))
    await bench.push(image)

    tracemalloc.start()
    try:
        copy = await bench.copy(image.digest)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert copy.tally.moved_size > 30_000_000
    assert peak < 15_000_000


async def test_a_cancelled_copy_leaves_no_files_and_no_tasks(bench: Bench) -> None:
    image = make_image(*(make_layer(20 + number, 3_000_000) for number in range(8)))
    await bench.push(image)
    before, began = asyncio.all_tasks(), asyncio.Event()

    def note(request: httpx.Request, response: httpx.Response) -> None:
        if request.method == "GET" and "/blobs/" in request.url.path and response:
            began.set()

    bench.source_net.change = note
    task = asyncio.create_task(bench.copy(image.digest, "x1"))
    await began.wait()

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert list(bench.folder.iterdir()) == []
    assert asyncio.all_tasks() == before
    assert not await bench.target.has_manifest("x1")
