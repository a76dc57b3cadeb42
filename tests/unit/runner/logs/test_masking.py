"""What a log must not show, however it is written and wherever the stream is cut."""

import base64
import html
import json
import re
import shlex
import urllib.parse
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exclave.runner.logs.masking import URL_LIMIT, Masker, mask_all
from exclave.runner.logs.pattern_index import Joined, Needles
from exclave.runner.logs.secret_spellings import find_needles

NASTY = "p'a\"ss <wörd> & 100%/+=\\x"
PEM = "-----BEGIN KEY-----\nMIIabcdef0123456789\nzzzzzzQQQQQQ==\n-----END KEY-----\n"


def needles_of(*secrets: str) -> Needles:
    return Needles(find_needles(secrets))


def feed_in_pieces(needles: Needles, pieces: list[bytes]) -> bytes:
    masker = Masker(needles)
    return b"".join(masker.feed(piece) for piece in pieces) + masker.finish()


def mask_slowly(needles: set[bytes], data: bytes) -> bytes:
    """Mask by the definition: hide every byte that a needle covers; overlaps are one mask."""
    spans = [
        (at, at + len(needle))
        for needle in needles
        for at in range(len(data))
        if data.startswith(needle, at)
    ]
    for match in re.finditer(rb"(?=://([^\s/?#\"'<>]*))", data):
        sign = len(match[1]) if len(match[1]) > URL_LIMIT else match[1].rfind(b"@")
        if sign > 0:
            spans.append((match.start(1), match.start(1) + sign))
    shown, covered = b"", 0
    for first, last in sorted(spans):
        if first >= covered:
            shown += data[covered:first] + b"***"
        covered = max(covered, last)
    return shown + data[covered:]


secret = st.text("ab:/@ \n", min_size=6, max_size=9)
output = st.lists(
    st.sampled_from(["a", "b", ":", "/", "@", " ", "\n", "://", "aaaaaa"]), max_size=40
)


@settings(max_examples=300, deadline=None)
@given(st.lists(secret, max_size=4), output, st.data())
def test_masking_does_not_depend_on_where_the_stream_is_cut(
    secrets: list[str], words: list[str], data: st.DataObject
) -> None:
    needles = {one.encode() for one in secrets}
    inserts = data.draw(st.lists(st.sampled_from([*secrets, ""]), max_size=4))
    text = "".join(words + inserts + words[::-1]).encode()
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=6)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]

    whole = mask_slowly(needles, text)

    assert mask_all(Needles(needles), text) == whole
    assert feed_in_pieces(Needles(needles), pieces) == whole
    assert feed_in_pieces(Needles(needles), [bytes([byte]) for byte in text]) == whole


@settings(max_examples=100, deadline=None)
@given(st.text(min_size=6, max_size=40).filter(lambda text: len(text.strip()) >= 6), st.data())
def test_no_random_secret_survives_in_any_writing_cut_at_any_point(
    value: str, data: st.DataObject
) -> None:
    value = value.encode(errors="replace").decode()
    needles = needles_of(value)
    write = data.draw(st.sampled_from([form for _, form in WRITINGS]))
    written = write(value)
    text = b"before " + written + b" after\n"

    for cut in range(len(text) + 1):
        shown = feed_in_pieces(needles, [text[:cut], text[cut:]])
        assert written not in shown
        assert value.encode() not in shown


def encode_base64(value: str, shift: int) -> bytes:
    return base64.b64encode(b"x" * shift + value.encode())


WRITINGS: list[tuple[str, Callable[[str], bytes]]] = [
    ("raw", lambda value: value.encode()),
    ("base64", lambda value: encode_base64(value, 0)),
    ("base64 after one byte", lambda value: encode_base64(value, 1)),
    ("base64 after two bytes", lambda value: encode_base64(value, 2)),
    ("base64 without padding", lambda value: encode_base64(value, 0).rstrip(b"=")),
    ("base64url", lambda value: base64.urlsafe_b64encode(value.encode())),
    ("hex", lambda value: value.encode().hex().encode()),
    ("HEX", lambda value: value.encode().hex().upper().encode()),
    ("url", lambda value: urllib.parse.quote(value).encode()),
    ("url, all", lambda value: urllib.parse.quote(value, safe="").encode()),
    ("form", lambda value: urllib.parse.quote_plus(value).encode()),
    ("json", lambda value: json.dumps(value).encode()),
    ("json utf-8", lambda value: json.dumps(value, ensure_ascii=False).encode()),
    ("shell", lambda value: shlex.quote(value).encode()),
    ("xml", lambda value: html.escape(value).encode()),
    ("repr", lambda value: repr(value).encode()),
]


@pytest.mark.parametrize(("name", "write"), WRITINGS)
@pytest.mark.parametrize("value", [NASTY, "hunter2hunter2", "tökén-" * 9, "a" * 61])
def test_a_secret_is_masked_in_every_usual_writing(
    name: str, write: Callable[[str], bytes], value: str
) -> None:
    shown = mask_all(needles_of(value), b"x=[" + write(value) + b"]\n")

    inner = shown.removeprefix(b"x=[").removesuffix(b"]\n").strip(b"'\"")
    # A base64 digit that mixes the secret with its neighbour may stay; nothing else does.
    assert b"***" in inner
    assert len(inner.replace(b"***", b"")) <= (4 if "base64" in name else 0)


def test_padding_that_tells_the_length_is_masked_too() -> None:
    text = base64.b64encode(b"secret-7")

    assert text.endswith(b"=")
    assert mask_all(needles_of("secret-7"), text) == b"***"


def test_wrapped_base64_of_a_long_secret_is_masked_line_by_line() -> None:
    value = "".join(chr(33 + at % 90) for at in range(300))

    shown = mask_all(needles_of(value), base64.encodebytes(value.encode()))

    assert set(shown.split()) == {b"***"}


def test_each_line_of_a_multi_line_secret_is_masked_alone() -> None:
    shown = mask_all(needles_of(PEM), b"key: MIIabcdef0123456789 and zzzzzzQQQQQQ== only\n")

    assert shown == b"key: *** and *** only\n"


def test_a_multi_line_secret_is_masked_whole() -> None:
    assert mask_all(needles_of(PEM), b"<" + PEM.encode() + b">") == b"<***>"


def test_overlapping_secrets_leave_no_rest_of_either() -> None:
    assert mask_all(needles_of("abcdef", "defghi"), b"[abcdefghi]") == b"[***]"


def test_the_longer_of_two_secrets_is_masked_whole() -> None:
    assert mask_all(needles_of("secret", "secret-long-one"), b"secret-long-one") == b"***"


def test_short_values_are_not_masked() -> None:
    assert mask_all(needles_of("dev"), b"development") == b"development"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (b"clone https://user:pw@host/x", b"clone https://***@host/x"),
        (b"https://token@host", b"https://***@host"),
        (b"https://u:p@ss@host/a@b", b"https://***@host/a@b"),
        (b"see https://host/a@b and me@host", b"see https://host/a@b and me@host"),
        (b"postgres://me:pw@db:5432/x?y", b"postgres://***@db:5432/x?y"),
        (b"http://@host", b"http://@host"),
    ],
)
def test_the_user_info_of_urls_is_always_cut(text: bytes, shown: bytes) -> None:
    assert mask_all(Needles(), text) == shown
    for cut in range(len(text)):
        assert feed_in_pieces(Needles(), [text[:cut], text[cut:]]) == shown


@pytest.mark.parametrize("value", ["pw@host-or-so", "r:pw@host/and-more", "//user-xyz"])
def test_user_info_is_cut_although_it_may_be_the_beginning_of_a_secret(value: str) -> None:
    text = b"https://user:pw@host/x"

    for cut in range(len(text)):
        shown = feed_in_pieces(needles_of(value), [text[:cut], text[cut:]])
        assert shown == b"https://***@host/x"


def test_nothing_is_held_back_that_cannot_become_a_secret() -> None:
    masker = Masker(needles_of("hunter2hunter2"))

    assert masker.feed(b"Continue? [y/N] ") == b"Continue? [y/N] "
    assert masker.feed(b"working hunt") == b"working "
    assert masker.feed(b"ing\n") == b"hunting\n"


def test_only_less_than_the_longest_needle_is_ever_held_back() -> None:
    needles = needles_of("abababababab")
    masker = Masker(needles)
    shown = sum(len(masker.feed(b"ab" * 3)) for _ in range(1000))
    rest = masker.finish()

    assert shown + len(rest) == 3  # one run, one mask
    assert needles.longest < 30


@pytest.mark.parametrize("size", [URL_LIMIT - 1, URL_LIMIT, URL_LIMIT + 1, 2 * URL_LIMIT, 70_000])
@pytest.mark.parametrize("rest", [b"@host/x", b" and more", b"", b"://u:pw@host/y"])
def test_user_info_of_any_length_is_hidden_wherever_the_stream_is_cut(
    size: int, rest: bytes
) -> None:
    text = b"see https://" + b"p" * size + rest
    whole = mask_slowly(set(), text)

    assert mask_all(Needles(), text) == whole
    assert b"p" * (size // 2) not in whole or not rest.startswith(b"@")
    for step in (1, 7, 1000, 4096):
        pieces = [text[at : at + step] for at in range(0, len(text), step)]
        assert feed_in_pieces(Needles(), pieces) == whole


def test_an_overlong_authority_is_not_kept_in_memory() -> None:
    masker = Masker(needles_of("hunter2hunter2"))
    begun = masker.feed(b"https://")

    shown = begun + b"".join(masker.feed(b"hunter2" * 1000) for _ in range(100))

    held, _ = masker.drop_held()
    assert (shown, len(held) < 100) == (b"https://***", True)


def test_the_rest_of_an_overlong_authority_is_hidden_after_a_gap() -> None:
    masker = Masker(Needles())
    masker.skip(b"p" * masker.reach)

    assert masker.feed(b"ppp@host/x") + masker.finish() == b"/x"


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.binary(min_size=6, max_size=40), max_size=12),
    st.lists(st.binary(max_size=20), max_size=8),
    st.data(),
)
def test_needles_of_every_length_are_found_at_every_place(
    needles: list[bytes], words: list[bytes], data: st.DataObject
) -> None:
    inserts = data.draw(st.lists(st.sampled_from([*needles, b""]), max_size=6))
    text = b"".join(part for pair in zip(words, inserts, strict=False) for part in pair)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=6)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    whole = mask_slowly(set(needles), text)

    assert mask_all(Needles(needles), text) == whole
    assert feed_in_pieces(Needles(needles), pieces) == whole
    half = len(needles) // 2
    joined = Joined(Needles(needles[:half]), Needles(needles[half:]))
    assert mask_all(joined, text) == whole
