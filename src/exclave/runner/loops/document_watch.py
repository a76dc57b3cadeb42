"""Watches the document of a Stack: what the customer allows now, and whether it can be read."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from exclave.base.errors import Problem
from exclave.base.logs import Log
from exclave.runner.cloud.accounts import CloudAccount, SecretDenied
from exclave.runner.cloud.document import (
    CloudDocument,
    DocumentBroken,
    DocumentUnknown,
    parse_document,
)
from exclave.runner.cloud.document_file import DocumentFile
from exclave.runner.cloud.exchange import CloudRefused
from exclave.runner.executions.deps import Deps
from exclave.runner.executions.kill_switch import ThrownBy, disable_runner, enable_runner
from exclave.runner.executions.stop import lose_touch

_log = Log("runner.document")

READ_EVERY_S: Final = 30.0
READ_WITHIN_S: Final = 7.0
"""A read that takes longer counts as no answer, so that slow ones do not make a stop late.

The worst case is a stop right after a read began: half a minute to the next one, which is refused,
`AGAIN_AFTER_S`, and a second refusal. The switch is thrown 49 seconds after the stop at the latest,
and what does not end is killed after 68 more (`kill_switch_watch.py`): within two minutes.
"""
AGAIN_AFTER_S: Final = 5.0
"""Access rights are slow to agree right after a change: one refusal alone means nothing."""
_UNREAD: Final = "the document of the Stack was not read yet"
_OUT_OF_REACH: Final = "the document of the Stack could not be read for too long"


class DocumentWatch:
    """Reads the document every half minute, and does what it says."""

    def __init__(
        self,
        account: CloudAccount,
        reference: str,
        file: DocumentFile,
        prepare: Callable[[CloudDocument], Awaitable[None]] | None = None,
    ) -> None:
        self._prepare = prepare
        self._account = account
        self._reference = reference
        self._file = file
        self._read_at: float | None = None
        self.document = file.read()
        """What was read last, perhaps before a restart; None if nothing ever was."""
        self.problem = ""
        """The code of what is wrong with the document in the Stack now."""

    def get_document(self) -> CloudDocument | None:
        """Return what was read last."""
        return self.document

    async def run(self, deps: Deps) -> None:
        """Watch as long as the runner runs; accept no work before the first document."""
        deps.gate.closed_because = _UNREAD
        while True:
            began = deps.clock.monotonic()
            is_read = await self.look(deps)
            left_s = READ_EVERY_S - (deps.clock.monotonic() - began)
            await deps.clock.sleep(max(left_s, AGAIN_AFTER_S) if is_read else AGAIN_AFTER_S)

    async def look(self, deps: Deps) -> bool:
        """Read the document once and act on it; return whether the Stack was reached."""
        try:
            text = await self._read_patiently(deps)
        except CloudRefused as refused:
            self._note_silence(deps, refused)
            return False
        if text is None:
            self._stop_unreadable(deps)
            return True
        self._read_at = deps.clock.monotonic()
        try:
            document = parse_document(text)
        except DocumentUnknown as unknown:
            self._keep_working(deps, unknown)
            return True
        if not await self._is_prepared(deps, document):
            return False
        self._obey(deps, document, text)
        return True

    async def _is_prepared(self, deps: Deps, document: CloudDocument) -> bool:
        """Do once what has to be done before the first job; return whether that is done."""
        if self._prepare is None:
            return True
        try:
            await self._prepare(document)
        except Problem as problem:
            _log.warning("not_prepared", code=problem.code, message=problem.message)
            deps.gate.closed_because = problem.message
            return False
        self._prepare = None
        return True

    async def _read_patiently(self, deps: Deps) -> str | None:
        """Return the text; None if it is refused, gone or broken, twice within seconds."""
        text = await self._read()
        if text is None:
            await deps.clock.sleep(AGAIN_AFTER_S)
            text = await self._read()
        return text

    async def _read(self) -> str | None:
        try:
            async with asyncio.timeout(READ_WITHIN_S):
                secret = await self._account.read_secret(self._reference)
            text = "" if secret is None else secret.reveal()
            parse_document(text)
        except TimeoutError as error:
            message = f"the document of the Stack did not come within {READ_WITHIN_S:.0f} s"
            raise CloudRefused(message) from error
        except SecretDenied as denied:
            _log.warning("document_denied", message=denied.message)
            return None
        except DocumentBroken as broken:
            _log.warning("document_broken", message=broken.message)
            return None
        except DocumentUnknown:
            pass  # `look` says so, and goes on with the last one
        return text

    def _obey(self, deps: Deps, document: CloudDocument, text: str) -> None:
        self.problem = ""
        if document != self.document:
            self._file.write(text)
            self.document = document
            deps.signals.report_wanted = True
            deps.audit.write(
                "document_changed",
                digest=document.digest,
                enabled=document.is_enabled,
                mode=document.mode,
                roles=dict(document.roles),
            )
        if document.is_enabled:
            is_changed = enable_runner(deps.disk.path, ThrownBy.STACK)
        else:
            is_changed = disable_runner(deps.disk.path, deps.clock.now(), ThrownBy.STACK)
        deps.signals.report_wanted |= is_changed
        self._open(deps)

    def _stop_unreadable(self, deps: Deps) -> None:
        """Stop everything: whoever takes the document away wants that. A new machine waits."""
        self.problem = "document_unreadable"
        if self._read_at is None:
            return
        if disable_runner(deps.disk.path, deps.clock.now(), ThrownBy.STACK):
            deps.audit.write("document_unreadable")
            deps.signals.report_wanted = True

    def _keep_working(self, deps: Deps, unknown: Problem) -> None:
        """Go on with the last document: it was written by the customer too."""
        if self.problem != unknown.code:
            _log.warning("document_unknown", message=unknown.message)
            deps.signals.report_wanted = True
        self.problem = unknown.code
        if self.document is not None:
            self._open(deps)

    def _note_silence(self, deps: Deps, refused: CloudRefused) -> None:
        """Take no new work, later stop what runs, while the Stack cannot be reached."""
        _log.warning("document_out_of_reach", message=refused.message)
        if self._read_at is None:
            return
        silent_s = deps.clock.monotonic() - self._read_at
        if silent_s > deps.timings.deadman_read_only_s:
            deps.gate.closed_because = _OUT_OF_REACH
        lose_touch(deps, silent_s)

    def _open(self, deps: Deps) -> None:
        if not deps.gate.is_open:
            deps.gate.closed_because = ""
            deps.signals.changed.fire()
