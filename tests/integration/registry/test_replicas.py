"""Servers that share a database and a blob store: any of them goes on where another stopped."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path

import pytest

from exclave.control.deps import ServerDeps
from exclave.control.registry.gc import collect_org
from exclave.storage.blobs.base import Blobs
from exclave.storage.blobs.files import FileBlobs
from exclave.storage.blobs.s3 import S3Blobs
from tests.integration.registry.kit import Hub, digest_of, make_manifest, serve_hub
from tests.support.databases import open_database
from tests.support.s3 import place, start_s3
from tests.support.world import ManualClock, make_deps

DATA = random.Random(5).randbytes(3_000_000)
DIGEST = digest_of(DATA)


@pytest.fixture(params=["files", "s3"])
async def hubs(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Hub, Hub]]:
    """Two servers; the callers and their tokens are the same."""
    async with AsyncExitStack() as stack:
        url = stack.enter_context(open_database("postgres"))
        endpoint = stack.enter_context(start_s3()) if request.param == "s3" else ""
        clock = ManualClock()
        servers: list[ServerDeps] = []
        for number in range(2):
            blobs: Blobs = S3Blobs(place(endpoint)) if endpoint else FileBlobs(tmp_path / "blobs")
            stack.push_async_callback(blobs.close)
            made = make_deps(
                clock, url=url, seed=number, blobs=blobs, name=f"srv-{number}", inline=False
            )
            stack.callback(made.db.close)
            servers.append(made)
        monkeypatch.setattr(type(servers[0].db.dialect), "has_clock", False)
        one = await stack.enter_async_context(serve_hub(servers[0]))
        other = await stack.enter_async_context(serve_hub(servers[1]))
        yield one, Hub(servers[1], clock, other.http, one.admin, one.token)


async def test_an_upload_goes_on_at_another_server(hubs: tuple[Hub, Hub]) -> None:
    one, two = hubs
    location = (await one.call("POST", "blobs/uploads/")).headers["Location"]
    for number, start in enumerate(range(0, len(DATA), 700_000)):
        chunk = DATA[start : start + 700_000]
        headers = {"Content-Range": f"{start}-{start + len(chunk) - 1}"}
        reply = await hubs[number % 2].call("PATCH", location, content=chunk, headers=headers)
        assert reply.status_code == 202
    shown = await two.call("GET", location)
    assert shown.headers["Range"] == f"0-{len(DATA) - 1}"

    reply = await two.call("PUT", f"{location}?digest={DIGEST}")

    assert reply.status_code == 201
    got = await one.call("GET", f"blobs/{DIGEST}", headers={"Range": "bytes=1000000-1999999"})
    assert (got.status_code, got.content) == (206, DATA[1_000_000:2_000_000])
    assert await one.count_keys() == 1


async def test_two_servers_take_one_piece_each_only_once(hubs: tuple[Hub, Hub]) -> None:
    one, _ = hubs
    location = (await one.call("POST", "blobs/uploads/")).headers["Location"]

    replies = await asyncio.gather(
        *(
            hub.call(
                "PATCH", location, content=DATA, headers={"Content-Range": f"0-{len(DATA) - 1}"}
            )
            for hub in hubs
            for _ in range(3)
        )
    )

    assert sorted(reply.status_code for reply in replies) == [202, *[416] * 5]
    done = await asyncio.gather(*(hub.call("PUT", f"{location}?digest={DIGEST}") for hub in hubs))
    assert [reply.status_code for reply in done] == [201, 201]
    assert (await one.call("GET", f"blobs/{DIGEST}")).content == DATA
    assert await one.count_keys() == 1


async def test_what_was_pushed_while_another_server_collects_is_there(
    hubs: tuple[Hub, Hub],
) -> None:
    one, two = hubs
    layers = [b"layer %d" % number for number in range(12)]
    for layer in layers:
        await one.publish(layer)
    one.clock.advance(1.5 * 86400)
    token = await one.make_token(push=True)
    pusher = Hub(one.deps, one.clock, one.http, one.admin, token)

    async def push(layer: bytes) -> None:
        await pusher.publish(layer, tag=layer.decode().replace(" ", "-"))

    async def collect() -> None:
        await collect_org(two.deps, two.org, timedelta(days=1))

    await asyncio.gather(*(work for layer in layers for work in (push(layer), collect())))
    await collect()

    for layer in layers:
        assert (await pusher.call("GET", f"blobs/{digest_of(layer)}")).content == layer
        document = await pusher.call("GET", f"manifests/{layer.decode().replace(' ', '-')}")
        assert document.content == make_manifest(layer)
    assert await one.count_keys() == 13
