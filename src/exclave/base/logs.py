"""Structured logs: one JSON object per line on stderr, the event a fixed `noun_verb`."""

import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TextIO

from exclave.base.printable import dump_json

_NOTHING: Mapping[str, object] = MappingProxyType({})
_bound: ContextVar[Mapping[str, object]] = ContextVar("exclave_log_facts", default=_NOTHING)


class Log:
    """Logs events with facts; ids bound by `bind` are added to each."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(f"exclave.{name}")

    def info(self, event: str, **facts: object) -> None:
        """Log a normal event."""
        self._write(logging.INFO, event, facts)

    def warning(self, event: str, **facts: object) -> None:
        """Log an event that may need attention."""
        self._write(logging.WARNING, event, facts)

    def error(self, event: str, *, exc: BaseException | None = None, **facts: object) -> None:
        """Log a failure, with the current traceback if there is one."""
        self._write(logging.ERROR, event, facts, exc)

    def _write(
        self,
        level: int,
        event: str,
        facts: Mapping[str, object],
        exc: BaseException | None = None,
    ) -> None:
        if self._logger.isEnabledFor(level):
            extra = {"facts": {**_bound.get(), **facts}}
            self._logger.log(level, event, extra=extra, exc_info=exc)


@contextmanager
def bind(**facts: object) -> Iterator[None]:
    """Add facts to every event logged inside the block."""
    token = _bound.set({**_bound.get(), **facts})
    try:
        yield
    finally:
        _bound.reset(token)


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON; values that JSON lacks are written as text."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info and record.exc_info[0] is not None:
            line["exception"] = self.formatException(record.exc_info)
        return dump_json(line)


def set_up_logs(level: str = "INFO", stream: TextIO | None = None) -> None:
    """Send all logs of this process to one stream as JSON lines."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    logging.getLogger("httpx").setLevel(logging.WARNING)
