"""The reserve of the disk: large writes stop before it, running work at half of it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from exclave.base.errors import Unavailable
from exclave.domain.quotas import DiskFull
from exclave.storage.blobs.files import FileBlobs
from exclave.storage.engine.disk import Disk, choose_reserve
from tests.support.world import ManualClock

GIB = 1 << 30
MIB = 1 << 20


async def pieces(count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield bytes(MIB)


def open_disk(folder: Path, room: int) -> Disk:
    """Watch a folder whose disk has so many bytes left above the reserve."""
    clock = ManualClock()
    free = Disk(folder, clock, 0).free
    return Disk(folder, clock, free - room)


@pytest.mark.parametrize(
    ("total", "reserve"),
    [
        (200 * MIB, 20 * MIB), (8 * GIB, 8 * GIB // 10), (20 * GIB, GIB), (100 * GIB, 5 * GIB),
        (4000 * GIB, 10 * GIB),
    ],
)  # fmt: skip
def test_the_reserve_fits_the_disk(total: int, reserve: int) -> None:
    assert choose_reserve(total) == reserve


async def test_an_upload_stops_at_the_reserve_and_leaves_nothing(tmp_path: Path) -> None:
    blobs = FileBlobs(tmp_path, inline=True, disk=open_disk(tmp_path, 3 * MIB))

    with pytest.raises(DiskFull):
        await blobs.put_stream("registry/a", pieces(8))

    assert await blobs.list_keys() == []
    assert list((tmp_path / "tmp@").iterdir()) == []


async def test_running_work_may_use_half_of_the_reserve(tmp_path: Path) -> None:
    blobs = FileBlobs(tmp_path, inline=True, disk=open_disk(tmp_path, 0))

    await blobs.put("logs/a", bytes(MIB))
    with pytest.raises(DiskFull):
        await blobs.put_stream("configs/a", pieces(1))

    assert await blobs.list_keys() == ["logs/a"]


async def test_running_work_waits_when_half_of_the_reserve_is_gone(tmp_path: Path) -> None:
    clock = ManualClock()
    free = Disk(tmp_path, clock, 0).free
    blobs = FileBlobs(tmp_path, inline=True, disk=Disk(tmp_path, clock, 3 * free))

    with pytest.raises(Unavailable) as refused:
        await blobs.put("logs/a", b"x")

    assert refused.value.facts["retry_after_s"] == 30


def test_the_disk_is_looked_at_once_a_second(tmp_path: Path) -> None:
    clock = ManualClock()
    disk = Disk(tmp_path, clock, 1)
    first = disk.free
    disk.check("registry/a", 1000)
    counted = disk.free

    clock.advance(1.5)

    assert counted == first - 1000
    assert disk.free != counted


async def test_what_a_client_reads_about_a_broken_store_names_no_key(tmp_path: Path) -> None:
    blobs = FileBlobs(tmp_path / "blobs", inline=True)
    (tmp_path / "blobs" / "tmp@").rmdir()

    with pytest.raises(Unavailable) as refused:
        await blobs.put("registry/org_1/reg_2", b"")

    assert "org_1" not in refused.value.message + refused.value.advice
