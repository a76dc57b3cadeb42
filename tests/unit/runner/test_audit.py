import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from exclave.runner.audit import Audit, verify_audit
from tests.support.virtual_time import VirtualClock, run_virtual


def write_lines(file: Path, count: int) -> None:
    async def main() -> None:
        audit = Audit(file, VirtualClock())
        for number in range(count):
            audit.write("job_started", number=number, text="grüße \u2028 \n")

    run_virtual(main())


@contextmanager
def edit_lines(file: Path) -> Iterator[list[bytes]]:
    lines = file.read_bytes().splitlines(keepends=True)
    yield lines
    file.write_bytes(b"".join(lines))


def test_a_chain_over_several_starts_holds(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"

    for _ in range(3):
        write_lines(file, 5)

    report = verify_audit(file)
    assert (report.ok, report.lines) == (True, 15)
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("line", [1, 4, 10])
def test_a_changed_line_is_named(tmp_path: Path, line: int) -> None:
    file = tmp_path / "audit.jsonl"
    write_lines(file, 10)
    with edit_lines(file) as lines:
        lines[line - 1] = lines[line - 1].replace(b"job_started", b"job_stopped")

    assert verify_audit(file).bad_line == line


def test_a_removed_line_is_noticed_at_the_next_one(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    write_lines(file, 10)
    with edit_lines(file) as lines:
        del lines[3]

    assert verify_audit(file).bad_line == 4


def test_two_swapped_lines_are_noticed(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    write_lines(file, 10)
    with edit_lines(file) as lines:
        lines[5], lines[6] = lines[6], lines[5]

    assert verify_audit(file).bad_line == 6


def test_a_line_in_another_form_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    write_lines(file, 3)
    with edit_lines(file) as lines:
        lines[1] = json.dumps(json.loads(lines[1])).encode() + b"\n"

    assert verify_audit(file).bad_line == 2


@pytest.mark.parametrize("left", [1, 30, -1])
def test_a_torn_tail_is_moved_aside_and_told(tmp_path: Path, left: int) -> None:
    file = tmp_path / "audit.jsonl"
    write_lines(file, 3)
    lines = file.read_bytes().splitlines(keepends=True)
    torn = lines[2][:left]
    file.write_bytes(b"".join(lines[:2]) + torn)

    write_lines(file, 1)

    assert verify_audit(file).ok
    events = [json.loads(line)["event"] for line in file.read_bytes().splitlines()]
    assert events == ["job_started", "job_started", "audit_repaired", "job_started"]
    assert (tmp_path / "audit.torn").read_bytes() == torn
