"""Terraform's JSON messages: logged as readable lines, and kept as far as the job needs them."""

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from exclave.base.secrets import Secret
from exclave.runner.logs.spool import LogWriter
from exclave.wire.logs import Stream

Event = Mapping[str, Any]
_QUIET = frozenset({"version", "outputs", "refresh_start", "refresh_complete"})
_MOST_DIAGNOSTICS = 100
_MAX_LINE = 16 << 20


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """An error or a warning, with file and line."""

    severity: str
    summary: str
    detail: str = ""
    address: str = ""
    place: str = ""
    code: str = ""

    def as_text(self) -> str:
        """Return it in the format of Terraform's terminal output."""
        head = f"{self.severity.capitalize()}: {self.summary}"
        where = f"\n  on {self.place}" if self.place else ""
        where += f"\n  with {self.address}" if self.address else ""
        where += f"\n    {self.code.strip()}" if self.code.strip() else ""
        detail = "".join(f"\n  {line}".rstrip() for line in self.detail.splitlines())
        return head + where + detail


class MessageLog:
    """A log writer that turns JSON lines on stdout into text; may be called from any thread."""

    def __init__(self, log: LogWriter, notice: Callable[[Event], None] | None = None) -> None:
        self._log = log
        self._notice = notice
        self._lock = threading.Lock()
        self._rest = b""
        self.diagnostics: list[Diagnostic] = []
        self.summary: Event = {}
        """The last summary of changes."""

    @property
    def errors(self) -> list[Diagnostic]:
        """The errors so far."""
        return [diagnostic for diagnostic in self.diagnostics if diagnostic.severity == "error"]

    def hide(self, secrets: Iterable[Secret]) -> None:
        """Mask these values from now on."""
        self._log.hide(secrets)

    def mask(self, text: str) -> str:
        """Return a text with secrets masked, for uses outside of the log."""
        return self._log.mask(text)

    def write(self, stream: Stream, data: bytes) -> None:
        """Write output; each line of stdout is a message."""
        if stream is not Stream.STDOUT:
            self._log.write(stream, data)
            return
        with self._lock:
            *lines, self._rest = (self._rest + data).split(b"\n")
            if len(self._rest) > _MAX_LINE:
                lines, self._rest = [*lines, self._rest], b""
            for line in lines:
                self._process_line(line)

    def system(self, text: str) -> None:
        """Log a message of the runner."""
        self._log.system(text)

    def flush(self) -> None:
        """Log unfinished lines."""
        self._log.flush()

    def end_streams(self) -> None:
        """Process the last line, even if it has no line break."""
        with self._lock:
            rest, self._rest = self._rest, b""
            if rest:
                self._process_line(rest)
        self._log.end_streams()

    def close(self) -> tuple[int, str]:
        """Do nothing: the log belongs to the job."""
        return (0, "")

    def _process_line(self, line: bytes) -> None:
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            event = None
        if not isinstance(event, dict) or "@message" not in event:
            self._log.write(Stream.STDOUT, line + b"\n")
            return
        text = self._read(event)
        if text:
            self._log.write(Stream.STDOUT, text.encode(errors="replace") + b"\n")
        if self._notice is not None:
            self._notice(event)

    def _read(self, event: Event) -> str:
        kind = event.get("type")
        if kind == "diagnostic":
            diagnostic = read_diagnostic(event.get("diagnostic"))
            if len(self.diagnostics) < _MOST_DIAGNOSTICS:
                self.diagnostics.append(diagnostic)
            return diagnostic.as_text()
        if kind == "change_summary" and isinstance(event.get("changes"), dict):
            self.summary = event["changes"]
        return "" if kind in _QUIET else str(event["@message"])


def read_diagnostic(told: object) -> Diagnostic:
    """Return a diagnostic of `-json` output; missing fields are empty."""
    given = told if isinstance(told, dict) else {}
    snippet = given.get("snippet")
    code = snippet.get("code") if isinstance(snippet, dict) else ""
    return Diagnostic(
        severity=str(given.get("severity") or "error"),
        summary=str(given.get("summary") or "unknown"),
        detail=str(given.get("detail") or ""),
        address=str(given.get("address") or ""),
        place=_read_place(given.get("range")),
        code=str(code or ""),
    )


def _read_place(told: object) -> str:
    if not isinstance(told, dict):
        return ""
    start = told.get("start")
    line = start.get("line") if isinstance(start, dict) else None
    return f"{told.get('filename')} line {line}" if line is not None else str(told.get("filename"))
