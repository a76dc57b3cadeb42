"""One output stream of a job: raw bytes become masked lines, and dropped bytes become gaps."""

from exclave.runner.logs.lines import LineSplitter, Piece
from exclave.runner.logs.masking import Masker
from exclave.runner.logs.pattern_index import NeedleSet


class Channel:
    """Masks and splits one stream; never shows part of a secret, even after dropped bytes."""

    def __init__(self, needles: NeedleSet) -> None:
        self._needles = needles
        self._masker = Masker(needles)
        self._lines = LineSplitter()
        self._context = b""
        self._in_gap = False

    def use(self, needles: NeedleSet) -> None:
        """Use another set of patterns from now on."""
        self._needles = needles
        self._masker.use(needles)

    @property
    def has_rest(self) -> bool:
        """Whether an unfinished line could be shown."""
        return self._lines.has_rest

    def feed(self, data: bytes) -> list[Piece]:
        """Add bytes; return the lines that can be shown."""
        if self._in_gap:
            self._leave_gap()
        return self._lines.feed(self._masker.feed(data))

    def flush(self) -> list[Piece]:
        """Return the beginning of a line, without what may be the beginning of a secret."""
        return self._lines.flush()

    def finish(self) -> list[Piece]:
        """End the stream and return the rest; the channel can be reused."""
        pieces = [] if self._in_gap else self._lines.feed(self._masker.finish())
        return [*pieces, *self._lines.finish()]

    def lose(self, data: bytes | bytearray) -> int:
        """Drop bytes; return how many were dropped, including those held back."""
        lost = len(data)
        if not self._in_gap:
            # What was held back is part of the gap, because the rest of it is dropped.
            self._in_gap = True
            self._context, hidden = self._masker.drop_held()
            lost += len(self._context) - hidden
        # A secret that began in the gap must be recognised when its end is shown.
        self._context = (self._context + data[-self._masker.reach :])[-self._masker.reach :]
        return lost

    def _leave_gap(self) -> None:
        self._masker = Masker(self._needles)
        self._masker.skip(self._context)
        self._context = b""
        self._in_gap = False
