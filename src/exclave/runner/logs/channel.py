"""One stream of a job's output on its way from raw bytes to lines, and the gaps in it."""

from exclave.runner.logs.lines import LineSplitter, Piece
from exclave.runner.logs.masking import Masker
from exclave.runner.logs.pattern_index import NeedleSet


class Channel:
    """Masks and splits one stream; after lost bytes it goes on without showing half a secret."""

    def __init__(self, needles: NeedleSet) -> None:
        self._needles = needles
        self._masker = Masker(needles)
        self._lines = LineSplitter()
        self._context = b""
        self._in_gap = False

    def use(self, needles: NeedleSet) -> None:
        """Mask other things from here on."""
        self._needles = needles
        self._masker.use(needles)

    @property
    def has_rest(self) -> bool:
        """Whether a line has begun that could be shown."""
        return self._lines.has_rest

    def feed(self, data: bytes) -> list[Piece]:
        """Add bytes that are to be shown."""
        if self._in_gap:
            self._leave_gap()
        return self._lines.feed(self._masker.feed(data))

    def flush(self) -> list[Piece]:
        """Show the beginning of a line; what may be the beginning of a secret is not shown."""
        return self._lines.flush()

    def finish(self) -> list[Piece]:
        """End the stream; another may begin."""
        pieces = [] if self._in_gap else self._lines.feed(self._masker.finish())
        return [*pieces, *self._lines.finish()]

    def lose(self, data: bytes | bytearray) -> int:
        """Add bytes that are not shown; return how many bytes are lost."""
        lost = len(data)
        if not self._in_gap:
            # What was held back is part of the gap: its other half will never be known.
            self._in_gap = True
            self._context, hidden = self._masker.take_held()
            lost += len(self._context) - hidden
        # A secret that began in the gap must be recognised when its end is shown.
        self._context = (self._context + data[-self._masker.reach :])[-self._masker.reach :]
        return lost

    def _leave_gap(self) -> None:
        self._masker = Masker(self._needles)
        self._masker.skip(self._context)
        self._context = b""
        self._in_gap = False
