"""What only files can get wrong: writers that die, folders that are shared, disks that fail."""

import asyncio
import hashlib
import random
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from exclave.base.errors import Unavailable
from exclave.storage.blobs.files import FileBlobs

KILLED = """
import asyncio, hashlib, random, sys
from pathlib import Path
from exclave.storage.blobs.files import FileBlobs

async def write(blobs, seed):
    source = random.Random(seed)
    while True:
        data = source.randbytes(source.randrange(1, 400_000))
        name = hashlib.sha256(data).hexdigest()
        await blobs.put(f"{name[:2]}/{name}", data)
        await blobs.put(f"same/{seed % 3}", data[:1] * len(data))
        print("put", flush=True)

async def main():
    blobs = FileBlobs(Path(sys.argv[1]))
    await asyncio.gather(*(write(blobs, int(sys.argv[2]) * 100 + number) for number in range(6)))

asyncio.run(main())
"""


def write_until_killed(folder: Path, *, seed: int, after_s: float) -> None:
    argv = [sys.executable, "-c", KILLED, str(folder), str(seed)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"put\n"
        time.sleep(after_s)
        writer.kill()


async def test_a_killed_writer_leaves_whole_blobs_only(tmp_path: Path) -> None:
    chance = random.Random(7)
    caught = 0  # kills in the middle of a put; the others prove little
    for seed in range(60):
        write_until_killed(tmp_path, seed=seed, after_s=chance.random() / 20)
        caught += bool(list((tmp_path / "tmp@").iterdir()))
        if caught == 5:
            break

    blobs = FileBlobs(tmp_path, inline=True)
    keys = await blobs.list_keys()
    assert caught == 5
    assert not list((tmp_path / "tmp@").iterdir())
    assert len(keys) > 5
    for key in keys:
        data = await blobs.get(key)
        whole = len(set(data)) == 1 if "same" in key else hashlib.sha256(data).hexdigest() in key
        assert whole, key


async def test_opening_a_folder_spares_files_that_others_are_writing(tmp_path: Path) -> None:
    first = FileBlobs(tmp_path)

    async def reopen() -> None:
        for _ in range(30):
            await FileBlobs(tmp_path, durable=False).close()

    puts = (first.put(f"k/{number}", bytes(50_000)) for number in range(40))
    await asyncio.gather(reopen(), *puts)

    assert len(await first.list_keys()) == 40
    await first.close()


async def test_a_full_or_broken_disk_is_unavailable(tmp_path: Path) -> None:
    blobs = FileBlobs(tmp_path / "blobs", inline=True)
    (tmp_path / "blobs" / "tmp@").rmdir()

    with pytest.raises(Unavailable, match="cannot store blob"):
        await blobs.put("a", b"")


@pytest.mark.parametrize(("durable", "syncs"), [(True, 5), (False, 0)])
async def test_a_large_file_is_synced_while_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, durable: bool, syncs: int
) -> None:
    """A commit of the database must not wait until all of it is on the disk."""
    synced: list[int] = []
    monkeypatch.setattr("os.fdatasync", synced.append)

    async def send() -> AsyncIterator[bytes]:
        for _ in range(5):
            yield bytes(1 << 20)

    blobs = FileBlobs(tmp_path, durable=durable)
    await blobs.put_stream("large", send())
    stored = await blobs.get("large")
    await blobs.close()

    assert len(synced) == syncs
    assert len(stored) == 5 << 20


async def test_two_files_are_never_synced_at_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit of the database waits for one piece at most, however many uploads there are."""
    syncing = threading.Lock()
    overlaps: list[int] = []

    def sync(descriptor: int) -> None:
        if not syncing.acquire(blocking=False):
            overlaps.append(descriptor)
            return
        time.sleep(0.01)
        syncing.release()

    monkeypatch.setattr("os.fdatasync", sync)
    monkeypatch.setattr("os.fsync", sync)
    blobs = FileBlobs(tmp_path)
    await asyncio.gather(*(blobs.put(f"blob-{number}", bytes(2 << 20)) for number in range(4)))
    await blobs.close()

    assert overlaps == []
