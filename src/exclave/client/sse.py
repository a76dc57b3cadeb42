"""A parser of server-sent events, independent of how the bytes are split into chunks.

httpx-sse is not used because it drops comments: `EventStream` needs them to tell a stream that is
only quiet from one that a proxy blocks.
"""

import re
from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass

_LINE_END = re.compile(rb"\r\n|\n|\r")
"""Only these end a line. `str.splitlines` also splits at U+2028 and others, which JSON does not
escape."""


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event; a comment, which keeps the connection alive, has the name `comment`."""

    name: str
    data: str = ""
    id: str = ""


COMMENT = "comment"


async def read_events(chunks: AsyncIterable[bytes]) -> AsyncIterator[ServerEvent]:
    """Yield the events of a response body; an incomplete event at the end is dropped."""
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
