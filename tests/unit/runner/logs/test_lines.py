"""From bytes to lines and records."""

from hypothesis import given
from hypothesis import strategies as st

from exclave.runner.logs.lines import LineSplitter, write_pieces
from exclave.wire.logs import Stream, write_record


def test_lines_are_split_and_the_last_one_needs_no_end() -> None:
    lines = LineSplitter()

    assert lines.feed(b"one\ntw") == [("one", False)]
    assert lines.feed(b"o\n\nthree") == [("two", False), ("", False)]
    assert lines.finish() == [("three", False)]


def test_a_character_that_is_cut_between_chunks_is_whole_again() -> None:
    lines = LineSplitter()
    euro = "€".encode()

    assert lines.feed(euro[:1]) == []
    assert lines.feed(euro[1:] + b"\n") == [("€", False)]


def test_bytes_that_are_not_text_become_visible_marks() -> None:
    lines = LineSplitter()

    assert lines.feed(b"a\xff\xfeb\n") == [("a\ufffd\ufffdb", False)]
    assert lines.feed(b"end\xe2\x82") == []
    assert lines.finish() == [("end\ufffd", False)]


def test_a_long_line_is_cut_into_pieces_that_say_so() -> None:
    lines = LineSplitter(longest=4)

    assert lines.feed(b"abcdefghij\n") == [("abcd", True), ("efgh", True), ("ij", False)]
    assert lines.feed(b"abcd\n") == [("abcd", False)]
    assert lines.feed(b"abcdefgh") == [("abcd", True)]
    assert lines.finish() == [("efgh", False)]


def test_a_line_without_end_can_be_shown_early() -> None:
    lines = LineSplitter()
    lines.feed(b"Password: ")

    assert lines.flush() == [("Password: ", True)]
    assert lines.flush() == []
    assert lines.feed(b"ok\n") == [("ok", False)]


@given(st.binary(), st.integers(1, 9))
def test_pieces_add_up_to_the_text(data: bytes, longest: int) -> None:
    lines = LineSplitter(longest)
    pieces = [piece for byte in data for piece in lines.feed(bytes([byte]))] + lines.finish()

    text = "".join(text + ("" if partial else "\n") for text, partial in pieces)
    assert all(len(text) <= longest for text, _ in pieces)
    assert text.removesuffix("\n") == data.decode(errors="replace").removesuffix("\n")


@given(st.lists(st.tuples(st.text(), st.booleans())), st.integers(0, 2**40))
def test_many_records_are_written_as_one_by_one(pieces: list[tuple[str, bool]], n: int) -> None:
    pieces = [(text.encode(errors="replace").decode(), partial) for text, partial in pieces]
    expected = b"".join(
        write_record(n + at, 7, Stream.STDERR, text, partial=partial)
        for at, (text, partial) in enumerate(pieces)
    )

    assert write_pieces(n, 7, Stream.STDERR, pieces) == expected
