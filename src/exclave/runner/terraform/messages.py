"""Terraform's JSON messages: logged as readable lines, and kept as far as the job needs them."""

import json
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from exclave.base.json_values import Json, JsonObject, object_or_empty
from exclave.base.secrets import Secret
from exclave.runner.logs.spool import LogWriter
from exclave.wire.logs import Stream

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
    location: str = ""
    code: str = ""

    def as_text(self) -> str:
        """Return it in the format of Terraform's terminal output."""
        head = f"{self.severity.capitalize()}: {self.summary}"
        where = f"\n  on {self.location}" if self.location else ""
        where += f"\n  with {self.address}" if self.address else ""
        where += f"\n    {self.code.strip()}" if self.code.strip() else ""
        detail = "".join(f"\n  {line}".rstrip() for line in self.detail.splitlines())
        return head + where + detail


@dataclass(frozen=True, slots=True)
class ResourceEvent:
    """What a message says about a resource; None where it says nothing."""

    address: str | None
    resource_type: str | None
    action: str | None
    id_key: str | None
    id_value: str | None


@dataclass(frozen=True, slots=True)
class ChangeCounts:
    """How many resources a plan or an apply changes."""

    add: int = 0
    change: int = 0
    remove: int = 0
    imported: int = 0


@dataclass(frozen=True, slots=True)
class Message:
    """One line of `-json` output."""

    type: str
    text: str
    at: str | None = None
    diagnostic: Diagnostic | None = None
    counts: ChangeCounts | None = None
    resource: ResourceEvent | None = None


class MessageLog:
    """A log writer that turns JSON lines on stdout into text; may be called from any thread."""

    def __init__(self, log: LogWriter, notice: Callable[[Message], None] | None = None) -> None:
        self._log = log
        self._notice = notice
        self._lock = threading.Lock()
        self._rest = b""
        self.diagnostics: list[Diagnostic] = []
        self.counts = ChangeCounts()
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
        message = parse_message(line)
        if message is None:
            self._log.write(Stream.STDOUT, line + b"\n")
            return
        text = self._read(message)
        if text:
            self._log.write(Stream.STDOUT, text.encode(errors="replace") + b"\n")
        if self._notice is not None:
            self._notice(message)

    def _read(self, message: Message) -> str:
        if message.diagnostic is not None:
            if len(self.diagnostics) < _MOST_DIAGNOSTICS:
                self.diagnostics.append(message.diagnostic)
            return message.diagnostic.as_text()
        if message.counts is not None:
            self.counts = message.counts
        return "" if message.type in _QUIET else message.text


def parse_message(line: bytes) -> Message | None:
    """Return the message in a line of stdout; None if the line is something else."""
    try:
        value: Json = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or "@message" not in value:
        return None
    kind = str(value.get("type"))
    subject = value.get("change" if kind == "planned_change" else "hook")
    changes = value.get("changes") if kind == "change_summary" else None
    return Message(
        kind,
        str(value["@message"]),
        at=_read_text(value.get("@timestamp")),
        diagnostic=read_diagnostic(value.get("diagnostic")) if kind == "diagnostic" else None,
        counts=_read_counts(changes) if isinstance(changes, dict) else None,
        resource=_read_resource(subject) if isinstance(subject, dict) else None,
    )


def _read_counts(changes: JsonObject) -> ChangeCounts:
    names = ("add", "change", "remove", "import")
    values = (changes.get(name) for name in names)
    return ChangeCounts(*(value if isinstance(value, int) else 0 for value in values))


def _read_resource(subject: JsonObject) -> ResourceEvent:
    resource = object_or_empty(subject.get("resource"))
    return ResourceEvent(
        _read_text(resource.get("addr")),
        _read_text(resource.get("resource_type")),
        _read_text(subject.get("action")),
        _read_text(subject.get("id_key")),
        _read_text(subject.get("id_value")),
    )


def _read_text(value: Json) -> str | None:
    return None if value is None else str(value)


def read_diagnostic(value: Json) -> Diagnostic:
    """Read a diagnostic of `-json` output; whatever is missing stays empty."""
    given = object_or_empty(value)
    return Diagnostic(
        severity=str(given.get("severity") or "error"),
        summary=str(given.get("summary") or "unknown"),
        detail=str(given.get("detail") or ""),
        address=str(given.get("address") or ""),
        location=_read_location(given.get("range")),
        code=str(object_or_empty(given.get("snippet")).get("code") or ""),
    )


def _read_location(value: Json) -> str:
    if not isinstance(value, dict):
        return ""
    line = object_or_empty(value.get("start")).get("line")
    name = value.get("filename")
    return f"{name} line {line}" if line is not None else str(name)
