"""Whatever bytes a runner stores: every line becomes a record that any JSON client can read."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from exclave.wire.logs import MAX_TEXT, LogRecord, Stream, read_records, write_record

EXECUTION = "exe_" + "0" * 26

UNREADABLE = {
    "deep": b"[" * 5000 + b"]" * 5000,
    "deep in the text's place": b"[1,1,1," + b"[" * 5000 + b"]" * 5000 + b"]",
    "deep in the extra": b'[1,1,1,"x",{"partial":' + b"[" * 5000 + b"]" * 5000 + b"}]",
    "wide": b"[" + b"[]," * 100_000 + b"1]",
    "huge number": b"[" + b"9" * 5000 + b',1,1,"x"]',
    "number beyond JSON clients": b'[9007199254740992,1,1,"x"]',
    "negative number": b'[-1,1,1,"x"]',
    "time beyond calendars": b'[1,253402300800000,1,"x"]',
    "infinite": b'[1e999,1,1,"x"]',
    "fraction": b'[1.0,1,1,"x"]',
    "boolean": b'[true,1,1,"x"]',
    "no number": b'[NaN,1,1,"x"]',
    "lone surrogate": b'[1,1,1,"\\ud800x"]',
    "encoded surrogate": b'[1,1,1,"\xed\xa0\x80"]',
    "bad UTF-8": b'[1,1,1,"\xff"]',
    "UTF-16": '[1,1,1,"x"]'.encode("utf-16"),
    "byte order mark": b'\xef\xbb\xbf[1,1,1,"x"]',
    "unknown stream": b'[1,1,3,"x"]',
    "text is no text": b"[1,1,1,5]",
    "too much text": b'[1,1,1,"' + b"x" * (MAX_TEXT + 1) + b'"]',
    "dropped is negative": b'[1,1,1,"x",{"dropped":-5}]',
    "dropped is no number": b'[1,1,1,"x",{"dropped":null}]',
    "extra is no object": b'[1,1,1,"x",[]]',
    "too many fields": b'[1,1,1,"x",{},1]',
    "object": b'{"4":1}',
    "two records, carriage return": b'[1,1,1,"a"]\r[1,1,1,"b"]',
    "raw control character": b'[1,1,1,"\x00"]',
    "nothing": b"",
}


def read(data: bytes) -> list[LogRecord]:
    return list(read_records(EXECUTION, data, 100))


def show(record: LogRecord) -> Any:
    return json.loads(record.model_dump_json())


@pytest.mark.parametrize("line", UNREADABLE.values(), ids=UNREADABLE)
def test_a_malformed_line_is_shown_in_its_place(line: bytes) -> None:
    good = write_record(1, 1, Stream.STDOUT, "good")

    records = read(good + line + b"\n" + good)

    assert [record.text for record in records] == ["good", "(unreadable record)", "good"]
    assert records[1].dropped == len(line) + 1
    assert records[1].offset == 100 + len(good) + len(line) + 1


@pytest.mark.parametrize(
    "text", ["", "a\rb", "\x00\x1b[2J", "\u2028\u2029\x85\x0b", 'x\\"y', "😀", "\ufffd" * MAX_TEXT]
)
def test_a_record_comes_back_as_it_was_written(text: str) -> None:
    line = write_record(7, 8, Stream.STDERR, text, partial=True)

    (record,) = read(line)

    assert (record.n, record.t_ms, record.stream, record.text) == (7, 8, Stream.STDERR, text)
    assert (record.partial, record.offset) == (True, 100 + len(line))


SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text())
ROWS = st.lists(st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3)), max_size=6)


@given(st.lists(st.one_of(st.binary(), ROWS.map(lambda row: json.dumps(row).encode()))))
@example([b'[1,1,1,"\\ud800"]'])
@example([b'[0,0,0,""' + b"]"])
def test_any_bytes_are_read_to_their_last_line_feed(lines: list[bytes]) -> None:
    data = b"\n".join([*lines, b""])

    records = read(data)

    assert len(records) == data.count(b"\n")
    assert sorted(record.offset for record in records) == [record.offset for record in records]
    if records:
        assert records[-1].offset == 100 + len(data)
    for record in records:
        assert LogRecord.model_validate(show(record)) == record
