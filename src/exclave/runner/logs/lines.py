"""From a stream of bytes, whatever they are, to lines of text and to records of a log."""

import codecs
import json
from collections.abc import Iterable

from exclave.wire.logs import MAX_TEXT, Stream

Piece = tuple[str, bool]
"""Text of a line, and whether the line goes on in the next piece."""
_quote = json.JSONEncoder(ensure_ascii=False).encode
"""A text as JSON; ten times faster than building an encoder for every record."""


class LineSplitter:
    """Decodes UTF-8 (invalid bytes become U+FFFD) and splits at line feeds; cuts long lines."""

    def __init__(self, longest: int = MAX_TEXT) -> None:
        self._longest = longest
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    @property
    def has_rest(self) -> bool:
        """Whether a line has begun and not ended."""
        return bool(self._rest)

    def feed(self, data: bytes) -> list[Piece]:
        """Add bytes; return complete lines, and full pieces of long ones."""
        lines = (self._rest + self._decoder.decode(data)).split("\n")
        rest = lines.pop()
        pieces: list[Piece] = []
        for line in lines:
            if len(line) > self._longest:
                self._cut(line, pieces)
                line = pieces.pop()[0]  # noqa: PLW2901 - the last piece ends the line
            pieces.append((line, False))
        if len(rest) > self._longest:
            self._cut(rest, pieces)
            rest = pieces.pop()[0]
        self._rest = rest
        return pieces

    def flush(self) -> list[Piece]:
        """Return the beginning of an unfinished line, so that it can be read."""
        rest, self._rest = self._rest, ""
        return [(rest, True)] if rest else []

    def finish(self) -> list[Piece]:
        """End the stream and return the last line."""
        pieces = self.feed(self._decoder.decode(b"", final=True).encode())
        self._decoder.reset()
        rest, self._rest = self._rest, ""
        return [*pieces, (rest, False)] if rest else pieces

    def _cut(self, line: str, pieces: list[Piece]) -> None:
        pieces += (
            (line[at : at + self._longest], True) for at in range(0, len(line), self._longest)
        )


def write_pieces(n: int, t_ms: int, stream: Stream, pieces: Iterable[Piece]) -> bytes:
    """Write pieces of lines as records, numbered from `n` on.

    Each is byte for byte what `wire.logs.write_record` writes for one piece.
    """
    middle = f",{t_ms},{int(stream)},"
    return "".join(
        [
            f'[{number}{middle}{_quote(text)},{{"partial":true}}]\n'
            if partial
            else f"[{number}{middle}{_quote(text)}]\n"
            for number, (text, partial) in enumerate(pieces, start=n)
        ]
    ).encode()
