"""Serialises many records at once, with the same bytes as `wire.logs.write_record`."""

import json
from collections.abc import Iterable

from exclave.runner.logs.lines import Piece
from exclave.wire.logs import Stream

_quote = json.JSONEncoder(ensure_ascii=False).encode
"""A text as JSON; ten times faster than building an encoder for every record."""


def write_pieces(n: int, t_ms: int, stream: Stream, pieces: Iterable[Piece]) -> bytes:
    """Return pieces of lines as records, numbered from `n`."""
    middle = f",{t_ms},{int(stream)},"
    return "".join(
        [
            f'[{number}{middle}{_quote(text)},{{"partial":true}}]\n'
            if partial
            else f"[{number}{middle}{_quote(text)}]\n"
            for number, (text, partial) in enumerate(pieces, start=n)
        ]
    ).encode()
