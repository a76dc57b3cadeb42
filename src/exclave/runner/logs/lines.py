"""Splits a stream of arbitrary bytes into lines of text."""

import codecs

from exclave.wire.logs import MAX_TEXT

Piece = tuple[str, bool]
"""Text of a line, and whether the line continues in the next piece."""


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
