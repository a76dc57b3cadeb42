"""Server-sent events: bytes in, events out, whatever the borders of the chunks."""

import re
from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass

_LINE_END = re.compile(rb"\r\n|\n|\r")
"""Only these end a line. Text-based line readers also split at U+2028 and others, which JSON
leaves unescaped."""


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event; a comment that keeps the connection alive has the name `comment`."""

    name: str
    data: str = ""
    id: str = ""


COMMENT = "comment"


async def read_events(chunks: AsyncIterable[bytes]) -> AsyncIterator[ServerEvent]:
    """Turn the body of a response into events; a half event at a cut is dropped."""
    fields: dict[str, list[str]] = {}
    async for line in _read_lines(chunks):
        if not line:
            if fields:
                yield _build_event(fields)
            fields = {}
        elif line.startswith(b":"):
            yield ServerEvent(COMMENT)
        else:
            name, _, value = line.decode("utf-8", "replace").partition(":")
            fields.setdefault(name, []).append(value.removeprefix(" "))


def _build_event(fields: dict[str, list[str]]) -> ServerEvent:
    return ServerEvent(
        name=fields.get("event", ["message"])[-1],
        data="\n".join(fields.get("data", [])),
        id=fields.get("id", [""])[-1],
    )


async def _read_lines(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    rest = b""
    async for chunk in chunks:
        rest += chunk
        held = b""
        if rest.endswith(b"\r"):  # its line feed may be in the next chunk
            rest, held = rest[:-1], b"\r"
        *lines, rest = _LINE_END.split(rest)
        rest += held
        for line in lines:
            yield line
