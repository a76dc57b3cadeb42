"""Reading and deleting blobs."""

import random

import pytest

from tests.integration.registry.kit import Hub, digest_of

DATA = random.Random(4).randbytes(2_500_000)
DIGEST = digest_of(DATA)
SIZE = len(DATA)


async def test_a_head_tells_what_a_get_would_send(hub: Hub) -> None:
    await hub.push(DATA)

    head = await hub.call("HEAD", f"blobs/{DIGEST}")
    got = await hub.call("GET", f"blobs/{DIGEST}")

    assert (head.status_code, got.status_code) == (200, 200)
    assert (head.content, got.content) == (b"", DATA)
    for name in (
        "Content-Length",
        "Docker-Content-Digest",
        "ETag",
        "Accept-Ranges",
        "Content-Type",
    ):
        assert head.headers[name] == got.headers[name]
    assert head.headers["Content-Length"] == str(SIZE)


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=5-9", 5, 10),
        ("bytes=1000000-", 1_000_000, SIZE),
        ("bytes=-10", SIZE - 10, SIZE),
        ("bytes=-99999999", 0, SIZE),
        (f"bytes=10-{SIZE + 5}", 10, SIZE),
    ],
)
async def test_a_range_of_a_blob(hub: Hub, asked: str, start: int, end: int) -> None:
    await hub.push(DATA)

    reply = await hub.call("GET", f"blobs/{DIGEST}", headers={"Range": asked})

    assert (reply.status_code, reply.content) == (206, DATA[start:end])
    assert reply.headers["Content-Range"] == f"bytes {start}-{end - 1}/{SIZE}"
    assert reply.headers["Content-Length"] == str(end - start)


@pytest.mark.parametrize("asked", [f"bytes={SIZE}-", f"bytes={SIZE + 3}-{SIZE + 9}", "bytes=-0"])
async def test_a_range_outside_of_a_blob(hub: Hub, asked: str) -> None:
    await hub.push(DATA)

    reply = await hub.call("GET", f"blobs/{DIGEST}", headers={"Range": asked})

    assert (reply.status_code, reply.headers["Content-Range"]) == (416, f"bytes */{SIZE}")


@pytest.mark.parametrize("asked", ["bytes=0-1,5-6", "bytes=9-5", "bytes=-", "lines=1-2", "x", ""])
async def test_a_range_that_is_not_understood_gets_the_whole(hub: Hub, asked: str) -> None:
    await hub.push(DATA)

    reply = await hub.call("GET", f"blobs/{DIGEST}", headers={"Range": asked})

    assert (reply.status_code, reply.content) == (200, DATA)


async def test_a_range_of_another_version_gets_the_whole(hub: Hub) -> None:
    await hub.push(DATA)

    for tag, status in ((f'"{DIGEST}"', 206), ('"other"', 200)):
        headers = {"Range": "bytes=0-3", "If-Range": tag}
        assert (await hub.call("GET", f"blobs/{DIGEST}", headers=headers)).status_code == status


async def test_a_deleted_blob_is_gone_from_its_repository_only(hub: Hub) -> None:
    await hub.push(DATA)
    await hub.push(DATA, "apps/other")

    assert (await hub.call("DELETE", f"blobs/{DIGEST}")).status_code == 202

    reply = await hub.call("DELETE", f"blobs/{DIGEST}")
    assert reply.status_code == 404
    assert (await hub.call("GET", f"{hub.name('apps/other')}/blobs/{DIGEST}")).content == DATA


@pytest.mark.parametrize(
    ("digest", "status", "code"),
    [
        (digest_of(b"missing"), 404, "BLOB_UNKNOWN"),
        ("sha256:abc", 400, "DIGEST_INVALID"),
        ("sha512:" + "0" * 128, 404, "BLOB_UNKNOWN"),
        ("sha512:" + "0" * 64, 400, "DIGEST_INVALID"),
        ("sha384:" + "0" * 96, 400, "DIGEST_INVALID"),
        ("latest", 400, "DIGEST_INVALID"),
        ("%00", 400, "DIGEST_INVALID"),
    ],
)
async def test_what_is_no_blob(hub: Hub, digest: str, status: int, code: str) -> None:
    await hub.push(DATA)

    for method in ("GET", "DELETE"):
        reply = await hub.call(method, f"blobs/{digest}")
        assert (reply.status_code, reply.json()["errors"][0]["code"]) == (status, code)
