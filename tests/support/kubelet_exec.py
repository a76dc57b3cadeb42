"""Commands in pods, as a kubelet serves them: SPDY/3.1 with a stream each for error, output, complaint.

Only what `kubectl exec` without input uses is here. Nothing is run: the annotation `bed/exec` of the
pod says how a command ends. Streams come in the order in which clients open them, so that their
headers are not read.
"""

import asyncio
import json
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from exclave.base.json_values import Json

PROTOCOL = "v4.channel.k8s.io"
_CONTROL, _SYN_STREAM, _SYN_REPLY, _PING = 0x80030000, 1, 2, 6
_FIN = 1
_HEAD = struct.Struct(">IBBH")
"""Kind or stream, flags, length in three bytes."""


@dataclass(frozen=True)
class ExecResult:
    """How a command in a pod ends."""

    code: int
    output: str

    def describe(self) -> Json:
        """Return the status that the error stream carries."""
        if self.code == 0:
            return {"metadata": {}, "status": "Success"}
        return {
            "metadata": {},
            "status": "Failure",
            "reason": "NonZeroExitCode",
            "message": f"command terminated with non-zero exit code: exit status {self.code}",
            "details": {"causes": [{"reason": "ExitCode", "message": str(self.code)}]},
        }


def read_result(annotation: str, command: list[str]) -> ExecResult:
    """Return the result in an annotation, such as `1 no route`; `{argv}` stands for the command."""
    code, _, output = annotation.partition(" ")
    return ExecResult(int(code), output.replace("{argv}", json.dumps(command)))


async def serve_exec(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    asked: Mapping[str, str],
    result: ExecResult,
) -> None:
    """Answer a request for a command: switch to SPDY, open the streams, send the result."""
    writer.write(
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
        b"X-Stream-Protocol-Version: " + PROTOCOL.encode() + b"\r\n\r\n"
    )
    kinds = ["error", *(name for name in ("input", "output") if asked.get(name) in {"1", "true"})]
    streams = await _accept_streams(
        reader, writer, len(kinds) + (asked.get("error") in {"1", "true"})
    )
    text = "output" if result.code == 0 else "complaint"
    numbered = dict(zip([*kinds, "complaint"], streams, strict=False))
    for kind, data in (
        (text, f"{result.output}\n".encode()),
        ("error", json.dumps(result.describe()).encode()),
    ):
        if kind in numbered:
            writer.write(_frame(numbered[kind], 0, data))
    for stream in streams:
        writer.write(_frame(stream, _FIN, b""))
    await writer.drain()
    await _wait_closed(reader)


async def _accept_streams(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, wanted: int
) -> list[int]:
    """Accept as many streams as are wanted; return their numbers in the order of their opening."""
    compressor = zlib.compressobj()
    streams: list[int] = []
    while len(streams) < wanted:
        kind, flags, body = await _read_frame(reader)
        if kind == _CONTROL | _PING:
            writer.write(_frame(kind, flags, body))
        if kind == _CONTROL | _SYN_STREAM:
            streams.append(struct.unpack(">I", body[:4])[0])
            headers = compressor.compress(struct.pack(">I", 0))
            headers += compressor.flush(zlib.Z_SYNC_FLUSH)
            writer.write(_frame(_CONTROL | _SYN_REPLY, 0, body[:4] + headers))
    return streams


async def _wait_closed(reader: asyncio.StreamReader) -> None:
    """Wait until the client has read everything and hangs up."""
    try:
        async with asyncio.timeout(10):
            while await reader.read(4096):
                pass
    except (TimeoutError, ConnectionError):
        return


async def _read_frame(reader: asyncio.StreamReader) -> tuple[int, int, bytes]:
    kind, flags, high, low = _HEAD.unpack(await reader.readexactly(_HEAD.size))
    return kind, flags, await reader.readexactly(high << 16 | low)


def _frame(kind: int, flags: int, body: bytes) -> bytes:
    return _HEAD.pack(kind, flags, len(body) >> 16, len(body) & 0xFFFF) + body
