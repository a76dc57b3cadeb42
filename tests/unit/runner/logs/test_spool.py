"""The spool keeps whole records, in bounds, over crashes."""

import errno
import hashlib
import os
from pathlib import Path
from unittest.mock import patch

import pytest

from exclave.runner.logs import spool as spool_module
from exclave.runner.logs.spool import Spool, SpoolLimits
from exclave.wire.logs import Stream, write_record
from tests.unit.runner.work_kit import read_stream

SMALL = SpoolLimits(segment_bytes=200, total_bytes=1000, keep_free_bytes=0)


def write(spool: Spool, text: str) -> bytes:
    record = write_record(spool.next_n, 0, Stream.STDOUT, text)
    spool.append(record, 1)
    return record


def test_records_are_read_back_by_offset_in_whole_lines(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "log")
    first, second = write(spool, "one"), write(spool, "two")

    assert spool.read(0, 1000) == first + second
    assert spool.read(0, len(first) + 3) == first
    assert spool.read(0, 2) == first  # never less than one record
    assert spool.read(len(first), 1000) == second
    assert spool.read(spool.end, 1000) == b""


def test_segments_are_bounded_and_forgotten_when_acknowledged(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "log", SMALL)
    stream = b"".join(write(spool, f"line {at}") for at in range(40))
    files = sorted((tmp_path / "log").iterdir())

    assert all(file.stat().st_size <= 200 for file in files)
    assert read_stream(spool) == stream

    spool.acknowledge(450)

    assert 250 <= spool.start <= 450
    assert read_stream(spool) == stream[spool.start :]
    spool.acknowledge(spool.end)
    assert len(list((tmp_path / "log").iterdir())) == 1


def test_room_shrinks_with_what_is_written_and_grows_with_what_is_acknowledged(
    tmp_path: Path,
) -> None:
    spool = Spool(tmp_path / "log", SMALL)
    for at in range(40):
        write(spool, f"line {at}")
    before = spool.room()

    spool.acknowledge(spool.end)

    assert before == 1000 - spool.end < spool.room()


@pytest.mark.parametrize("acknowledged", [False, True])
def test_a_torn_last_record_is_cut_off_wherever_it_is_torn(
    tmp_path: Path, *, acknowledged: bool
) -> None:
    spool = Spool(tmp_path / "log", SMALL)
    stream = b"".join(write(spool, f"line {at} ü") for at in range(20))
    if acknowledged:
        spool.acknowledge(stream.rfind(b"[10,"))
    last = max((tmp_path / "log").iterdir())
    content = last.read_bytes()
    record = content[content.rfind(b"\n", 0, -1) + 1 :]
    start = spool.start

    for kept in range(len(record) + 1):
        last.write_bytes(content[: len(content) - len(record) + kept])
        again = Spool(tmp_path / "log", SMALL)
        whole = stream if kept == len(record) else stream[: -len(record)]
        assert (again.start, again.end) == (start, len(whole))
        assert again.next_n == (20 if kept == len(record) else 19)
        assert read_stream(again) == whole[start:]

        added = write(again, "the runner was restarted")
        end, digest = again.close()

        assert read_stream(again) == whole[start:] + added
        assert end == len(whole) + len(added)
        known = hashlib.sha256(whole + added).hexdigest()
        assert digest == ("" if acknowledged else known)
        for file in (tmp_path / "log").iterdir():
            if file.name > last.name:
                file.unlink()


def test_numbering_goes_on_when_the_last_segment_is_still_empty(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "log", SMALL)
    for at in range(20):
        write(spool, f"line {at}")
    last = max((tmp_path / "log").iterdir())
    offset, n = map(int, last.stem.split("-"))
    last.write_bytes(b"")

    again = Spool(tmp_path / "log", SMALL)
    write(again, "more")

    assert (again.next_n, again.read(offset, 100)) == (
        n + 1,
        write_record(n, 0, Stream.STDOUT, "more"),
    )


def test_a_full_disk_leaves_no_half_record(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "log")
    first = write(spool, "one")

    def write_half(handle: int, data: bytes) -> None:
        os.write(handle, data[:5])
        raise OSError(errno.ENOSPC, "No space left on device")

    with (
        patch.object(spool_module, "_write_all", write_half),
        pytest.raises(OSError, match="space"),
    ):
        write(spool, "two")
    third = write(spool, "three")

    assert read_stream(spool) == first + third
    assert spool.close() == (len(first + third), hashlib.sha256(first + third).hexdigest())


def test_a_nearly_full_disk_has_no_room_for_logs(tmp_path: Path) -> None:
    assert Spool(tmp_path / "log", SpoolLimits(keep_free_bytes=1 << 60)).room() == 0
