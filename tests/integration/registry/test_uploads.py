"""Blobs on their way in: in one request, in two, in pieces, cut, doubled, wrong."""

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.integration.registry.kit import Hub, digest_of

DATA = random.Random(3).randbytes(300_000)
DIGEST = digest_of(DATA)


async def begin(hub: Hub) -> str:
    reply = await hub.call("POST", "blobs/uploads/")
    assert reply.status_code == 202
    assert reply.headers["Range"] == "0-0"
    return str(reply.headers["Location"])


async def send(hub: Hub, location: str, start: int, end: int, **rest: Any) -> Any:
    headers = {"Content-Range": f"{start}-{end - 1}", "Content-Type": "application/octet-stream"}
    return await hub.call("PATCH", location, content=DATA[start:end], headers=headers, **rest)


async def read(hub: Hub, digest: str = DIGEST) -> bytes:
    return (await hub.call("GET", f"blobs/{digest}")).content


async def test_one_request_is_enough(hub: Hub) -> None:
    reply = await hub.call("POST", f"blobs/uploads/?digest={DIGEST}", content=DATA)

    assert reply.status_code == 201
    assert reply.headers["Location"] == f"{hub.name()}/blobs/{DIGEST}"
    assert reply.headers["Docker-Content-Digest"] == DIGEST
    assert await read(hub) == DATA


async def test_begin_then_send_all_with_the_digest(hub: Hub) -> None:
    location = await begin(hub)

    reply = await hub.call("PUT", f"{location}?digest={DIGEST}", content=DATA)

    assert (reply.status_code, await read(hub)) == (201, DATA)
    assert (await hub.call("GET", location)).status_code == 404
    assert await hub.count_keys() == 1


@pytest.mark.parametrize("last", [300_000, 250_000])
async def test_pieces_in_order_make_a_blob(hub: Hub, last: int) -> None:
    location = await begin(hub)
    for start in range(0, last, 50_000):
        reply = await send(hub, location, start, start + 50_000)
        assert reply.status_code == 202
        assert reply.headers["Range"] == f"0-{start + 49_999}"
        location = reply.headers["Location"]

    reply = await hub.call("PUT", f"{location}?digest={DIGEST}", content=DATA[last:])

    assert (reply.status_code, await read(hub)) == (201, DATA)
    assert await hub.count_keys() == 1


async def test_a_stream_of_unknown_length_is_one_piece(hub: Hub) -> None:
    location = await begin(hub)

    async def stream() -> AsyncIterator[bytes]:
        for at in range(0, len(DATA), 7000):
            yield DATA[at : at + 7000]

    reply = await hub.call("PATCH", location, content=stream())
    assert reply.headers["Range"] == f"0-{len(DATA) - 1}"
    reply = await hub.call("PUT", f"{reply.headers['Location']}?digest={DIGEST}")

    assert (reply.status_code, await read(hub)) == (201, DATA)


async def test_a_piece_out_of_order_is_refused_and_told_where_to_go_on(hub: Hub) -> None:
    location = await begin(hub)
    await send(hub, location, 0, 100)

    for start, end in ((200, 300), (0, 100), (99, 200)):
        reply = await send(hub, location, start, end)
        assert reply.status_code == 416
        assert (reply.headers["Range"], reply.headers["Location"]) == ("0-99", location)
        assert reply.json()["errors"][0]["code"] == "BLOB_UPLOAD_INVALID"

    assert await hub.count_keys() == 1


async def test_an_upload_tells_how_far_it_is_and_goes_on_from_there(hub: Hub) -> None:
    location = await begin(hub)
    assert (await hub.call("GET", location)).headers["Range"] == "0-0"
    await send(hub, location, 0, 120_000)

    reply = await hub.call("GET", location)
    assert (reply.status_code, reply.headers["Range"]) == (204, "0-119999")
    await send(hub, reply.headers["Location"], 120_000, len(DATA))

    reply = await hub.call("PUT", f"{location}?digest={DIGEST}")
    assert (reply.status_code, await read(hub)) == (201, DATA)


async def test_two_pieces_for_the_same_place_do_not_both_count(hub: Hub) -> None:
    location = await begin(hub)

    replies = await asyncio.gather(*(send(hub, location, 0, 100_000) for _ in range(4)))

    assert sorted(reply.status_code for reply in replies) == [202, 416, 416, 416]
    await send(hub, location, 100_000, len(DATA))
    await hub.call("PUT", f"{location}?digest={DIGEST}")
    assert await read(hub) == DATA


async def test_a_cancelled_upload_is_gone_with_its_pieces(hub: Hub) -> None:
    location = await begin(hub)
    await send(hub, location, 0, 100)

    assert (await hub.call("DELETE", location)).status_code == 204
    for method in ("GET", "DELETE", "PATCH"):
        assert (await hub.call(method, location)).status_code == 404
    assert (await hub.call("PUT", f"{location}?digest={DIGEST}")).status_code == 404
    assert await hub.count_keys() == 0


async def test_content_that_is_not_what_the_digest_names_is_not_kept(hub: Hub) -> None:
    location = await begin(hub)
    await send(hub, location, 0, 100)

    reply = await hub.call("PUT", f"{location}?digest={DIGEST}", content=b"something else")

    assert (reply.status_code, reply.json()["errors"][0]["code"]) == (400, "DIGEST_INVALID")
    assert (await hub.call("HEAD", f"blobs/{DIGEST}")).status_code == 404
    assert await hub.count_keys() == 0


@pytest.mark.parametrize(
    "digest", ["", "sha256:", "sha256:" + "A" * 64, "sha512:" + "a" * 64, "md5:abc", "%00", "x"]
)
async def test_a_digest_that_is_none_is_refused(hub: Hub, digest: str) -> None:
    location = await begin(hub)

    reply = await hub.call("PUT", f"{location}?digest={digest}", content=DATA)

    assert (reply.status_code, reply.json()["errors"][0]["code"]) == (400, "DIGEST_INVALID")


async def test_an_upload_without_a_digest_stays_open(hub: Hub) -> None:
    location = await begin(hub)

    assert (await hub.call("PUT", location, content=DATA)).status_code == 400
    assert (await hub.call("GET", location)).status_code == 204


@pytest.mark.parametrize("announced", ["x", "5-1", "-5", "0-", "0-99 ", "0-9999999999999999999999"])
async def test_a_range_that_is_none_is_refused(hub: Hub, announced: str) -> None:
    location = await begin(hub)

    reply = await hub.call(
        "PATCH", location, content=DATA[:100], headers={"Content-Range": announced}
    )

    assert (reply.status_code, reply.json()["errors"][0]["code"]) == (400, "BLOB_UPLOAD_INVALID")


async def test_more_or_less_than_announced_is_refused(hub: Hub) -> None:
    location = await begin(hub)

    async def stream() -> AsyncIterator[bytes]:
        yield DATA[:100]

    for announced in ("0-50", "0-150"):
        reply = await hub.call(
            "PATCH", location, content=stream(), headers={"Content-Range": announced}
        )
        assert (reply.status_code, reply.json()["errors"][0]["code"]) == (400, "SIZE_INVALID")
        reply = await hub.call(
            "PATCH", location, content=DATA[:100], headers={"Content-Range": announced}
        )
        assert reply.status_code == 400

    assert (await hub.call("GET", location)).headers["Range"] == "0-0"
    assert await hub.count_keys() == 0


async def test_an_empty_blob_is_a_blob(hub: Hub) -> None:
    digest = await hub.push(b"")

    reply = await hub.call("GET", f"blobs/{digest}")
    assert (reply.status_code, reply.content, reply.headers["Content-Length"]) == (200, b"", "0")


async def test_the_same_blob_twice_is_stored_once(hub: Hub) -> None:
    await asyncio.gather(*(hub.push(DATA, f"apps/{name}") for name in ("a", "b", "a", "c")))

    assert await hub.count_keys() == 1


async def test_a_finished_upload_may_be_finished_again(hub: Hub) -> None:
    location = await begin(hub)
    await hub.call("PUT", f"{location}?digest={DIGEST}", content=DATA)

    reply = await hub.call("PUT", f"{location}?digest={DIGEST}", content=DATA)

    assert reply.status_code == 201
    other = digest_of(b"other")
    assert (await hub.call("PUT", f"{location}?digest={other}")).status_code == 404


async def test_finishing_at_once_at_two_servers_makes_one_blob(hub: Hub) -> None:
    location = await begin(hub)
    await send(hub, location, 0, 100_000)
    await send(hub, location, 100_000, len(DATA))

    replies = await asyncio.gather(
        *(hub.call("PUT", f"{location}?digest={DIGEST}") for _ in range(3))
    )

    assert [reply.status_code for reply in replies] == [201, 201, 201]
    assert (await read(hub), await hub.count_keys()) == (DATA, 1)


async def test_a_wrong_digest_beside_a_right_one_does_not_spoil_it(hub: Hub) -> None:
    location = await begin(hub)
    await send(hub, location, 0, len(DATA))

    await asyncio.gather(
        hub.call("PUT", f"{location}?digest={DIGEST}"),
        hub.call("PUT", f"{location}?digest={digest_of(b'x')}"),
    )

    found = await hub.call("GET", f"blobs/{DIGEST}")
    assert (found.status_code, found.content) in [(200, DATA), (404, found.content)]


async def test_an_upload_belongs_to_its_repository(hub: Hub) -> None:
    location = await begin(hub)
    elsewhere = location.replace("apps/demo", "apps/other")

    for method in ("GET", "PATCH", "DELETE"):
        assert (await hub.call(method, elsewhere)).status_code == 404
    assert (await hub.call("GET", location)).status_code == 204


@pytest.mark.parametrize("upload", ["x", "upl_" + "0" * 26, "%00", "..", "x" * 3000])
async def test_an_unknown_upload_is_not_found(hub: Hub, upload: str) -> None:
    for method in ("GET", "PATCH", "DELETE"):
        reply = await hub.call(method, f"blobs/uploads/{upload}")
        assert reply.status_code == 404, (method, upload)


async def test_a_blob_of_another_repository_is_mounted(hub: Hub) -> None:
    await hub.push(DATA, "apps/source")
    source = f"{hub.org}/apps/source"

    reply = await hub.call("POST", f"blobs/uploads/?mount={DIGEST}&from={source}")

    assert reply.status_code == 201
    assert reply.headers["Location"] == f"{hub.name()}/blobs/{DIGEST}"
    assert (await read(hub), await hub.count_keys()) == (DATA, 1)


@pytest.mark.parametrize("source", ["", "{org}/apps/none", "org_00000000000000000000000000/apps/x"])
async def test_what_cannot_be_mounted_is_uploaded(hub: Hub, source: str) -> None:
    query = f"mount={DIGEST}" + (f"&from={source.format(org=hub.org)}" if source else "")

    reply = await hub.call("POST", f"blobs/uploads/?{query}")

    assert reply.status_code == 202
    reply = await hub.call("PUT", f"{reply.headers['Location']}?digest={DIGEST}", content=DATA)
    assert reply.status_code == 201
