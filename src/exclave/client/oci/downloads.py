"""Downloads of blobs: streamed, verified, and resumed after an interruption."""

import asyncio
from io import RawIOBase
from pathlib import Path

import httpx

from exclave.base.digests import start_hash, write_digest
from exclave.client.oci.calls import OciCalls
from exclave.client.oci.documents import CorruptContent, Descriptor
from exclave.client.problems import Unreachable

_CHUNK = 1 << 20


async def pull_blob(calls: OciCalls, repository: str, blob: Descriptor, target: Path) -> None:
    """Download a blob to a file, which is created once its content is complete and verified."""
    part = target.with_name(f"{target.name}.part")
    try:
        with part.open("wb", buffering=0) as out:
            download = Download(calls, repository, blob, out)
            await calls.repeat(download.go_on)
            download.check()
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


class Download:
    """One download, in as many requests as it needs."""

    def __init__(self, calls: OciCalls, repository: str, blob: Descriptor, out: RawIOBase) -> None:
        self._calls = calls
        self._repository = repository
        self._blob = blob
        self._out = out
        self._hash = start_hash(blob.digest)
        self.arrived = 0
        """How many bytes are in the file."""
        self.grown = asyncio.Event()
        """Set when bytes have arrived; a reader clears it before it waits."""

    async def go_on(self) -> None:
        """Start the download, or resume it where the last attempt ended."""
        path = self._calls.path(self._repository, f"blobs/{self._blob.digest}")
        headers = {"Range": f"bytes={self.arrived}-"} if self.arrived else {}
        async with self._calls.open("GET", path, self._repository, headers) as reply:
            if reply.status_code != httpx.codes.PARTIAL_CONTENT:
                self._begin_anew()
            async for chunk in reply.aiter_raw(_CHUNK):
                if self.arrived + len(chunk) > self._blob.size:
                    raise CorruptContent(f"{path} is larger than announced")
                await asyncio.to_thread(self._keep, chunk)
                self.arrived += len(chunk)
                self.grown.set()
        if self.arrived < self._blob.size:
            raise Unreachable(f"{path} ended after {self.arrived} of {self._blob.size} bytes")

    def check(self) -> None:
        """Raise if the content does not match its digest."""
        if write_digest(self._blob.digest, self._hash) != self._blob.digest:
            raise CorruptContent(f"the registry sent something else than {self._blob.digest}")

    def _keep(self, chunk: bytes) -> None:
        self._hash.update(chunk)
        self._out.write(chunk)

    def _begin_anew(self) -> None:
        self._hash = start_hash(self._blob.digest)
        self.arrived = 0
        self._out.seek(0)
        self._out.truncate()
