"""What happened in a simulated world: a hashed trace, counts, and broken promises."""

import asyncio
import hashlib
from collections import Counter, deque
from collections.abc import Sequence

from exclave.domain.lanes import conflict
from exclave.wire.runner import Dispatch

_KEPT = 400


class Ledger:
    """Everything that is worth knowing about one run, in the order in which it happened."""

    def __init__(self, *, keep: int = _KEPT) -> None:
        self.lines: deque[str] = deque(maxlen=keep)
        self.broken: list[str] = []
        self.counts: Counter[str] = Counter()
        self._hash = hashlib.sha256()

    def trace(self, *words: object) -> None:
        """Add an event; its time is part of it."""
        line = f"{asyncio.get_running_loop().time():11.4f} {' '.join(map(str, words))}"
        self.lines.append(line)
        self._hash.update(line.encode())

    def report(self, invariant: str, *words: object) -> None:
        """Remember a broken promise."""
        self.trace("BROKEN", invariant, *words)
        self.broken.append(f"{invariant} {' '.join(map(str, words))}")

    @property
    def digest(self) -> str:
        """The hash of all events so far."""
        return self._hash.hexdigest()


class Call:
    """A call to a cloud that nobody can take back once it has begun."""

    def __init__(self, dispatch: Dispatch, step: int) -> None:
        self.execution = dispatch.execution_id
        self.job = dispatch.job_id
        self.queue = dispatch.queue_id
        self.lanes: Sequence[str] = tuple(dispatch.lanes)
        self.mutating = dispatch.mutating
        self.step = step


class Cloud:
    """The outside world: it obeys whoever calls, and remembers who did (I4, I5, I6)."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._open: dict[Call, None] = {}
        self.cancelled: dict[str, None] = {}
        """Jobs that are cancelled for good: nothing of them may begin any more."""
        self.weak: dict[str, None] = {}
        """Read-only executions whose machine froze, or whose processes outlived their runner.

        Read-only work is offered again after 60 s of silence, so these may overlap with their
        successors: harmless, and the price of not waiting 900 s for a plan.
        """
        self.permitted: dict[str, None] = {}
        """Executions that the control plane let start."""
        self.unsure: dict[tuple[str, str], frozenset[str]] = {}
        """Lanes on which a change was lost, and that nobody has looked at since.

        The value is what had leave to start by then. It may go on until its runner learns of the
        loss, also if its first call is yet to come.
        """
        self.approved: dict[str, set[str]] = {}
        """By workflow: the digests that a person said yes to."""
        self.digests: dict[str, str | None] = {}
        """By execution that began: the digest that it took for approved."""
        self._runs: dict[str, None] = {}
        self._changed_by: dict[str, str] = {}
        self.finished: dict[str, None] = {}

    def begin_run(self, dispatch: Dispatch) -> None:
        """An execution begins to work; it does so once, and changes belong to one execution."""
        if dispatch.execution_id in self._runs:
            self._ledger.report("I6", "execution ran twice", dispatch.execution_id)
        self._runs[dispatch.execution_id] = None
        self.digests[dispatch.execution_id] = dispatch.approved_digest

    def begin(self, dispatch: Dispatch, step: int) -> Call:
        """Begin a call."""
        call = Call(dispatch, step)
        self._ledger.trace("call", call.execution, step, *call.lanes)
        self._ledger.counts["calls"] += 1
        if call.job in self.cancelled and not self._is_weak(call):
            self._ledger.report("I5", "call after final cancel", call.job)
        if call.mutating:
            first = self._changed_by.setdefault(call.job, call.execution)
            if first != call.execution:
                self._ledger.report("I6", "job changed twice", call.job, first, call.execution)
        for (queue, lane), permitted in self.unsure.items():
            if call.execution in permitted or queue != call.queue:
                continue
            if any(conflict(lane, held) for held in call.lanes):
                self._ledger.report("I4", "call on a lane that nobody looked at", call.execution)
        for other in self._open:
            if other.execution != call.execution and _clash(call, other):
                self._note_overlap(call, other)
        self._open[call] = None
        return call

    def end(self, call: Call) -> None:
        """End a call, because it was done or because its process was killed."""
        self._open.pop(call, None)

    def is_quiet(self, execution: str) -> bool:
        """Tell whether nothing of an execution is under way."""
        return all(call.execution != execution for call in self._open)

    def _note_overlap(self, call: Call, other: Call) -> None:
        if self._is_weak(call) or self._is_weak(other):
            self._ledger.counts["read_only_overlaps"] += 1
            return
        self._ledger.report("I4", "overlap", other.execution, call.execution, *call.lanes)

    def _is_weak(self, call: Call) -> bool:
        return not call.mutating and call.execution in self.weak


def _clash(one: Call, other: Call) -> bool:
    return one.queue == other.queue and any(conflict(a, b) for a in one.lanes for b in other.lanes)
