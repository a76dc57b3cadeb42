"""Ships the runner's own log and its audit trail to the customer's log store."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from exclave.base.errors import Problem
from exclave.base.logs import Log
from exclave.runner.cloud.audit_tail import AuditTail
from exclave.runner.cloud.document import CloudDocument
from exclave.runner.cloud.exchange import CloudRefused
from exclave.runner.cloud.imds import Machine
from exclave.runner.cloud.log_stores import LogKind, LogLine, LogPlace, LogStore, is_unfit
from exclave.runner.cloud.own_log import OwnLog
from exclave.runner.executions.deps import Deps
from exclave.runner.loops.apart import RunApart

_log = Log("runner.log_shipping")

SHIP_EVERY_S: Final = 5.0
_LONGEST_PAUSE_S: Final = 300.0
_BATCH_BYTES: Final = 256 << 10
_BATCH_LINES: Final = 1000
_LONGEST_LINE: Final = 32 << 10
_LAST_WITHIN_S: Final = 5.0


class LogShipper:
    """Ships batches while the runner runs, and a last one when it stops.

    Nothing waits for it: a store that does not accept lines costs the oldest lines of the log, and
    the audit trail is on the disk until it was copied.
    """

    def __init__(
        self,
        store: LogStore,
        read_document: Callable[[], CloudDocument | None],
        read_machine: Callable[[], Awaitable[Machine]],
        own: OwnLog,
        run_apart: RunApart = asyncio.to_thread,
    ) -> None:
        self._store = store
        self._read_document = read_document
        self._read_machine = read_machine
        self._own = own
        self._run_apart = run_apart
        self._machine = ""
        self._held: list[LogLine] = []
        """Lines of the log that are on their way."""
        self._tail: AuditTail | None = None
        self._failures = 0
        self._shipping = asyncio.Lock()

    async def run(self, deps: Deps) -> None:
        """Ship every few seconds; after failures more and more seldom."""
        while True:
            pause = SHIP_EVERY_S * 2 ** min(self._failures, 10)
            await deps.clock.sleep(min(pause, _LONGEST_PAUSE_S))
            await self.ship(deps)

    async def finish(self, deps: Deps) -> None:
        """Ship what is left, if that is possible within seconds."""
        try:
            async with asyncio.timeout(_LAST_WITHIN_S):
                await self.ship(deps)
        except TimeoutError:
            _log.warning("logs_not_shipped", message="the log store did not answer in time")

    async def ship(self, deps: Deps) -> None:
        """Ship all that waits; note the first failure of several."""
        document = self._read_document()
        if document is None or not document.log:
            return
        async with self._shipping:
            try:
                while await self._ship_audit(deps, document) | await self._ship_log(deps, document):
                    pass
            except Problem as problem:
                self._note_failure(deps, problem)
                return
        if self._failures:
            _log.info("logs_shipped_again", failures=self._failures)
            self._failures = 0

    async def _ship_audit(self, deps: Deps, document: CloudDocument) -> bool:
        """Copy the next entries of the audit trail; return whether there may be more."""
        tail = self._tail = self._tail or AuditTail(deps.disk.audit)
        lines, end = await self._run_apart(lambda: tail.read_batch(_BATCH_BYTES, _BATCH_LINES))
        if lines:
            await self._write(deps, document, "audit", lines)
        await self._run_apart(lambda: tail.mark(end))
        return len(lines) == _BATCH_LINES

    async def _ship_log(self, deps: Deps, document: CloudDocument) -> bool:
        """Ship the oldest lines of the log; return whether there may be more."""
        if not self._held:
            self._held = self._own.remove_batch(_BATCH_BYTES, _BATCH_LINES)
        count = len(self._held)
        if count:
            await self._write(deps, document, "runner", self._held)
            self._held = []
        return count == _BATCH_LINES

    async def _write(
        self, deps: Deps, document: CloudDocument, kind: LogKind, lines: Sequence[LogLine]
    ) -> None:
        place = LogPlace(document.log, document.install, await self._name_machine(), kind)
        masked = await self._run_apart(lambda: _mask_lines(deps.mask, lines))
        try:
            await self._store.write(place, masked)
        except CloudRefused as refused:
            if not is_unfit(refused):
                raise
            _log.warning("lines_refused", kind=kind, count=len(lines), message=refused.message)
            self._own.note_loss(lines)

    async def _name_machine(self) -> str:
        if not self._machine:
            machine = await self._read_machine()
            self._machine = machine.id or "unknown"
        return self._machine

    def _note_failure(self, deps: Deps, problem: Problem) -> None:
        if not self._failures:
            _log.warning("logs_not_shipped", code=problem.code, message=problem.message)
            deps.audit.write("logs_not_shipped", message=problem.message)
        self._failures += 1


def _mask_lines(mask: Callable[[str], str], lines: Sequence[LogLine]) -> list[LogLine]:
    """Return lines in the order of their times, masked and cut to what every store accepts."""
    ordered = sorted(lines, key=lambda line: line.at)
    return [LogLine(line.at, _cut(mask(line.text))) for line in ordered]


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_LINE else f'{{"event":"line_too_long","size":{len(text)}}}'
