"""One contract for every blob store: in memory, in files, and in S3 (against a real S3 API server)."""

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from exclave.base.errors import InvalidInput, NotFound, Unavailable
from exclave.storage.blobs.base import Blobs
from exclave.storage.blobs.files import FileBlobs
from exclave.storage.blobs.memory import MemoryBlobs
from exclave.storage.blobs.s3 import S3Blobs
from tests.support.s3 import place, start_s3

PREFIXES = (f"run-{number}/blobs" for number in itertools.count())


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    with start_s3() as endpoint:
        yield endpoint


@pytest.fixture(params=["memory", "files", "files-inline", "s3"])
async def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Blobs]:
    store: Blobs
    match request.param:
        case "memory":
            store = MemoryBlobs()
        case "files":
            store = FileBlobs(tmp_path / "blobs")
        case "files-inline":
            store = FileBlobs(tmp_path / "blobs", inline=True, durable=False)
        case _:
            endpoint = request.getfixturevalue("s3_endpoint")
            store = S3Blobs(place(endpoint, prefix=next(PREFIXES)))
    yield store
    await store.close()


@pytest.mark.parametrize("data", [b"", b"\x00\xff" * 7, b"one\n"])
async def test_what_was_put_is_what_is_got(blobs: Blobs, data: bytes) -> None:
    await blobs.put("logs/exe_1/000001.zst", data)

    assert await blobs.get("logs/exe_1/000001.zst") == data


async def test_a_second_put_replaces_the_first(blobs: Blobs) -> None:
    await blobs.put("a/b", b"first, and longer")
    await blobs.put("a/b", b"second")
    await blobs.put("a/b", b"second")

    assert await blobs.get("a/b") == b"second"
    assert await blobs.list_keys() == ["a/b"]


async def test_a_missing_blob_is_not_found(blobs: Blobs) -> None:
    await blobs.put("a/b/c", b"x")

    for key in ("nope", "a/b", "a/b/c/d"):
        with pytest.raises(NotFound):
            await blobs.get(key)


async def test_delete_takes_one_blob_and_may_be_repeated(blobs: Blobs) -> None:
    await blobs.put("a/b/one", b"1")
    await blobs.put("a/b/two", b"2")

    for key in ("a/b/one", "a/b/one", "never", "a/b", "a/b/two/deeper"):
        await blobs.delete(key)

    assert await blobs.list_keys() == ["a/b/two"]


async def test_a_key_is_free_again_after_its_folder_was_emptied(blobs: Blobs) -> None:
    await blobs.put("a/b", b"1")
    await blobs.delete("a/b")
    await blobs.put("a", b"2")

    assert await blobs.list_keys() == ["a"]


async def test_keys_are_listed_by_folder_in_order(blobs: Blobs) -> None:
    keys = ["b/2", "b/10", "b-c/1", "b.c/1", "b/x/y/z", "bb/1", "a", ".hidden/_x"]
    for key in keys:
        await blobs.put(key, b"")

    assert await blobs.list_keys() == sorted(keys)
    assert await blobs.list_keys("b") == ["b/10", "b/2", "b/x/y/z"]
    assert await blobs.list_keys("b/x") == ["b/x/y/z"]
    assert await blobs.list_keys("a") == []
    assert await blobs.list_keys("none") == []


@pytest.mark.parametrize(
    "key",
    [
        *("/a", "a/", "a//b", "A", "a b", "a/../b", "..", ".", "a/./b", "é", "a\n", "a\x00", "a@"),
        *("~", "a\\b", "a" * 201, "/".join("a" * 300)),
    ],
)
async def test_a_bad_key_is_refused_by_every_call(blobs: Blobs, key: str) -> None:
    for call in (blobs.get(key), blobs.put(key, b""), blobs.delete(key), blobs.list_keys(key)):
        with pytest.raises(InvalidInput):
            await call

    assert await blobs.list_keys() == []


async def test_an_empty_or_the_longest_key(blobs: Blobs) -> None:
    longest = "/".join(["a" * 200, "b" * 200, "c" * 110])
    with pytest.raises(InvalidInput):
        await blobs.put("", b"")
    await blobs.put(longest, b"x")

    assert len(longest) == 512
    assert await blobs.get(longest) == b"x"


async def test_a_blob_of_32_mib(blobs: Blobs) -> None:
    data = random.Random(1).randbytes(1 << 20) * 32

    await blobs.put("big", data)

    assert await blobs.get("big") == data


async def test_many_puts_and_deletes_at_once(blobs: Blobs) -> None:
    async def put_and_delete(number: int) -> None:
        folder = f"exe_{number % 5}"
        await blobs.put(f"{folder}/gone-{number}", b"gone")
        await asyncio.gather(
            blobs.put(f"{folder}/kept-{number}", b"%d" % number),
            blobs.delete(f"{folder}/gone-{number}"),
        )

    await asyncio.gather(*(put_and_delete(number) for number in range(60)))

    kept = {f"exe_{number % 5}/kept-{number}": b"%d" % number for number in range(60)}
    assert await blobs.list_keys() == sorted(kept)
    assert {key: await blobs.get(key) for key in kept} == kept


async def test_writers_of_one_key_leave_one_of_their_blobs(blobs: Blobs) -> None:
    versions = [bytes([number]) * 100_000 for number in range(12)]

    await asyncio.gather(*(blobs.put("same", data) for data in versions))

    assert await blobs.get("same") in versions


@pytest.mark.parametrize("blobs", ["memory", "files", "files-inline"], indirect=True)
async def test_a_key_is_never_a_folder_too(blobs: Blobs) -> None:
    await blobs.put("a/b", b"x")

    for key in ("a", "a/b/c", "a/b/c/d"):
        with pytest.raises(InvalidInput):
            await blobs.put(key, b"")

    assert await blobs.list_keys() == ["a/b"]


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ({"bucket": "no-such-bucket"}, "NoSuchBucket"),
        ({"endpoint": "http://127.0.0.1:9"}, "127.0.0.1:9"),
    ],
)
async def test_a_broken_s3_is_unavailable_and_never_an_empty_one(
    s3_endpoint: str, broken: dict[str, str], says: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = S3Blobs(place(**{"endpoint": s3_endpoint, **broken}))
    calls = (store.get("a/b"), store.put("a/b", b""), store.delete("a/b"), store.list_keys())

    for call in calls:
        with pytest.raises(Unavailable) as refused:
            await call
        shown = refused.value.message + refused.value.advice
        assert not any(word in shown for word in ("a/b", "bucket", "127.0.0.1"))

    told = [str(record.facts) for record in caplog.records]  # type: ignore[attr-defined]
    assert len([line for line in told if says in line]) == len(calls)


async def test_plain_http_must_be_written_down(
    s3_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", s3_endpoint)

    with pytest.raises(Unavailable):
        await S3Blobs(place("")).get("a")


async def test_s3_places_with_two_prefixes_do_not_meet(s3_endpoint: str) -> None:
    one, two = (S3Blobs(place(s3_endpoint, prefix=prefix)) for prefix in ("meet/a", "meet/ab"))
    await one.put("key", b"one")
    await two.put("other", b"two")

    assert (await one.list_keys(), await two.list_keys()) == (["key"], ["other"])


async def pieces(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def read(blobs: Blobs, key: str, start: int = 0, size: int | None = None) -> bytes:
    return b"".join([chunk async for chunk in blobs.read(key, start, size)])


@pytest.mark.parametrize("chunks", [(), (b"",), (b"a", b"", b"bc"), (b"x" * 3_000_000, b"y")])
async def test_a_stream_is_stored_like_its_bytes(blobs: Blobs, chunks: tuple[bytes, ...]) -> None:
    await blobs.put_stream("a/b", pieces(*chunks))

    assert await blobs.get("a/b") == b"".join(chunks)
    assert await read(blobs, "a/b") == b"".join(chunks)


async def test_a_long_stream_arrives_whole_and_can_be_read_in_parts(blobs: Blobs) -> None:
    data = random.Random(2).randbytes(1 << 20) * 20 + b"tail"
    cut = [data[at : at + 70_000] for at in range(0, len(data), 70_000)]
    await blobs.put_stream("big", pieces(*cut))

    assert await read(blobs, "big") == data
    for start, size in ((0, 1), (5, 100), (1 << 20, 3 << 20), (len(data) - 4, 4), (17, None)):
        end = None if size is None else start + size
        assert await read(blobs, "big", start, size) == data[start:end]
    assert await read(blobs, "big", len(data) - 2, 50) == data[-2:]
    assert await read(blobs, "big", len(data), 1) == b""


async def test_a_stream_that_breaks_stores_nothing_and_replaces_nothing(blobs: Blobs) -> None:
    await blobs.put("kept", b"old")

    async def break_off() -> AsyncIterator[bytes]:
        yield b"x" * (9 << 20)
        message = "cut"
        raise NotFound(message)

    for key in ("kept", "new"):
        with pytest.raises(NotFound, match="cut"):
            await blobs.put_stream(key, break_off())

    assert await blobs.list_keys() == ["kept"]
    assert await blobs.get("kept") == b"old"


async def test_reading_a_missing_blob_is_not_found(blobs: Blobs) -> None:
    await blobs.put("a/b", b"")

    for key in ("none", "a"):
        with pytest.raises(NotFound):
            await read(blobs, key, 0, 5)
    assert await read(blobs, "a/b", 0, 5) == b""
