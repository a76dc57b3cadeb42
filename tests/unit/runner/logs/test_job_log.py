"""A job's log: order, masks, limits, and the exact count of what is left out."""

import random
from pathlib import Path

import pytest

from exclave.base.secrets import Secret
from exclave.runner.logs.job_log import JobLog, LogLimits, open_log
from exclave.runner.logs.spool import Spool, SpoolLimits
from exclave.wire.logs import LogRecord, Stream, read_records
from tests.unit.runner.work_kit import EXECUTION, ManualClock, close_and_check, join, read_spool

OUT, ERR, SYSTEM = Stream.STDOUT, Stream.STDERR, Stream.SYSTEM
MIB = 1 << 20


def open_small(folder: Path, **limits: int) -> tuple[JobLog, Spool]:
    head, tail = limits.pop("head", MIB), limits.pop("tail", 256 * 1024)
    folder.mkdir(exist_ok=True)
    spool_limits = SpoolLimits(keep_free_bytes=0, **limits)
    return open_log(folder / "log", ManualClock(), LogLimits(head, tail), spool_limits)


def count_shown(records: list[LogRecord]) -> int:
    return sum(len(join(records, stream).encode()) for stream in (OUT, ERR))


def test_records_are_numbered_and_tell_when_and_where_from(tmp_path: Path) -> None:
    clock = ManualClock()
    began = int(clock.now().timestamp() * 1000)
    log, spool = open_log(tmp_path / "log", clock)

    log.write(OUT, b"one\n")
    clock.seconds += 1.5
    log.write(ERR, b"two\n")
    log.system("three")

    records = close_and_check(log, spool)
    assert [(one.n, one.t_ms - began, one.stream, one.text) for one in records] == [
        (0, 0, OUT, "one"),
        (1, 1500, ERR, "two"),
        (2, 1500, SYSTEM, "three"),
    ]


def test_lines_of_two_streams_do_not_mix(tmp_path: Path) -> None:
    log, spool = open_small(tmp_path)

    log.write(OUT, b"one ")
    log.write(ERR, b"two ")
    log.write(OUT, b"1\n")
    log.write(ERR, b"2\n")

    assert [one.text for one in close_and_check(log, spool)] == ["one 1", "two 2"]


def test_secrets_are_masked_on_every_stream_and_in_the_runners_own_lines(tmp_path: Path) -> None:
    log, spool = open_small(tmp_path)
    log.hide([Secret("hunter2hunter2")])

    log.write(OUT, b"a hunter2")
    log.write(ERR, b"b hunter2hunter2\n")
    log.write(OUT, b"hunter2\n")
    log.system("cannot start hunter2hunter2")

    assert log.mask("x hunter2hunter2") == "x ***"
    assert [one.text for one in close_and_check(log, spool)] == [
        "b ***",
        "a ***",
        "cannot start ***",
    ]


def test_a_secret_that_is_too_short_to_be_masked_is_told(tmp_path: Path) -> None:
    log, spool = open_small(tmp_path)

    log.hide([Secret("abc"), Secret("long enough")])

    (record,) = close_and_check(log, spool)
    assert (record.stream, "1 secret" in record.text) == (SYSTEM, True)


def test_an_unfinished_line_can_be_shown_but_never_half_a_secret(tmp_path: Path) -> None:
    log, spool = open_small(tmp_path)
    log.hide([Secret("hunter2hunter2")])

    log.write(OUT, b"Password: hunter2hun")
    log.flush()
    assert [(one.text, one.partial) for one in read_spool(spool)] == [("Password: ", True)]

    log.write(OUT, b"ter2 ok\n")
    assert join(close_and_check(log, spool), OUT) == "Password: *** ok\n"


def test_the_last_line_of_one_process_does_not_run_into_the_next(tmp_path: Path) -> None:
    log, spool = open_small(tmp_path)

    log.write(OUT, b"no newline")
    log.end_streams()
    log.write(OUT, b"next\n")

    assert join(close_and_check(log, spool), OUT) == "no newline\nnext\n"


@pytest.mark.parametrize("chunk", [1000, 65536, 200_000])
def test_past_the_head_the_tail_is_kept_and_the_rest_is_counted_exactly(
    tmp_path: Path, chunk: int
) -> None:
    log, spool = open_small(tmp_path, head=100_000, tail=200_000)
    data = b"".join(b"line %d\n" % at for at in range(100_000))

    for at in range(0, len(data), chunk):
        log.write(OUT, data[at : at + chunk])
    records = close_and_check(log, spool)

    (gap,) = [one for one in records if one.dropped]
    shown = count_shown(records)
    # A line that the gap cuts in two shows as two: one line feed more than was written.
    assert shown + gap.dropped - len(data) in {0, 1}
    head = join([one for one in records if one.n < gap.n], OUT)
    tail = join([one for one in records if one.n > gap.n], OUT)
    assert data.decode().startswith(head.removesuffix("\n"))
    assert data.decode().endswith(tail)
    assert 130_000 <= len(tail) <= 200_000
    assert "reached" in next(one.text for one in records if one.stream is SYSTEM)


def test_output_that_ends_within_the_tail_is_complete(tmp_path: Path) -> None:
    log, spool = open_small(tmp_path, head=50_000, tail=10 * MIB)
    data = b"".join(b"line %d\n" % at for at in range(100_000))

    log.write(OUT, data)
    records = close_and_check(log, spool)

    assert join(records, OUT).encode() == data
    assert not any(one.dropped for one in records)


def test_a_secret_across_the_edge_of_a_gap_shows_no_half(tmp_path: Path) -> None:
    value = "S3CR" + "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz", k=60))
    data = (value.encode() + b"#####\n") * 20_000
    for chunk in (999, 4096, 65536):
        log, spool = open_small(tmp_path / str(chunk), head=20_000, tail=100_000)
        log.hide([Secret(value)])
        for at in range(0, len(data), chunk):
            log.write(OUT, data[at : at + chunk])
        records = close_and_check(log, spool)

        assert any(one.dropped for one in records)
        assert set(join(records, OUT)) == set("*#\n")


def test_lines_of_the_runner_survive_in_a_flood(tmp_path: Path) -> None:
    log, spool = open_small(tmp_path, head=10_000, tail=100_000)

    for at in range(100):
        log.system(f"step {at}")
        log.write(OUT, b"x" * 9_999 + b"\n")
    records = close_and_check(log, spool)

    steps = [one.text for one in records if one.text.startswith("step")]
    assert steps == [f"step {at}" for at in range(100)]


def test_a_full_spool_drops_with_a_count_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    log, spool = open_small(tmp_path, head=1 << 40, total_bytes=2 * MIB, segment_bytes=256 * 1024)
    data = b"".join(b"%06d %s\n" % (at, b"y" * 90) for at in range(60_000))
    half = len(data) // 2
    stream = b""

    for at in range(0, half, 10_000):
        log.write(OUT, data[at : min(half, at + 10_000)])
        assert spool.used_bytes <= 2 * MIB
    stream += spool.read(0, 1 << 30)
    full = spool.end
    while piece := spool.read(len(stream), MIB):
        stream += piece
    spool.acknowledge(full)
    for at in range(half, len(data), 10_000):
        log.write(OUT, data[at : at + 10_000])
        assert spool.used_bytes <= 2 * MIB
        while piece := spool.read(len(stream), MIB):
            stream += piece
        spool.acknowledge(len(stream))
    end, _ = log.close()
    while piece := spool.read(len(stream), MIB):
        stream += piece

    assert end == len(stream)
    records = list(_read(stream))
    (gap,) = [one for one in records if one.dropped]
    assert count_shown(records) + gap.dropped - len(data) in {0, 1}
    assert data.decode().endswith(join([one for one in records if one.n > gap.n], OUT))


def test_an_endless_full_spool_still_tells_the_count_at_the_end(tmp_path: Path) -> None:
    log, spool = open_small(tmp_path, total_bytes=1000)
    log.write(OUT, b"z" * 5000)

    (record,) = close_and_check(log, spool)

    assert record.dropped == 5000


def test_after_a_restart_the_log_goes_on_with_number_time_and_digest(tmp_path: Path) -> None:
    clock = ManualClock()
    began = int(clock.now().timestamp() * 1000)
    log, _ = open_log(tmp_path / "log", clock)
    log.write(OUT, b"one\ntwo\nthr")
    clock.seconds += 60  # the process is gone; nothing was closed

    again, spool = open_log(tmp_path / "log", clock)
    again.system("the runner was restarted")

    records = close_and_check(again, spool)
    assert [(one.n, one.t_ms - began, one.text) for one in records] == [
        (0, 0, "one"),
        (1, 0, "two"),
        (2, 60_000, "the runner was restarted"),
    ]


def test_closing_twice_tells_the_same(tmp_path: Path) -> None:
    log, _ = open_small(tmp_path)
    log.write(OUT, b"one")

    assert log.close() == log.close()


def _read(stream: bytes) -> list[LogRecord]:
    return list(read_records(EXECUTION, stream, 0))
