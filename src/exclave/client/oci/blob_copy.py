"""Copies a blob from one registry to another while it is being downloaded."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from exclave.client.oci.calls import Content, OciCalls
from exclave.client.oci.documents import Descriptor
from exclave.client.oci.downloads import Download, pull_blob
from exclave.client.oci.uploads import SMALL, Upload, push_blob

_CHUNK = 1 << 20


async def copy_blob(
    source: tuple[OciCalls, str], target: tuple[OciCalls, str], blob: Descriptor, file: Path
) -> None:
    """Copy a blob that the target does not have, through a file; both ways can be resumed.

    `source` and `target` are a registry and a repository in it. A large blob is uploaded while it
    is downloaded; the upload is completed only when the content has been verified.
    """
    try:
        if blob.size <= SMALL:
            await pull_blob(*source, blob, file)
            await push_blob(*target, file, blob.digest, blob.size, is_missing=True)
        else:
            await _copy_growing(source, target, blob, file)
    finally:
        await asyncio.to_thread(file.unlink, missing_ok=True)


async def _copy_growing(
    source: tuple[OciCalls, str], target: tuple[OciCalls, str], blob: Descriptor, file: Path
) -> None:
    with file.open("wb", buffering=0) as out:
        download = Download(*source, blob, out)
        fetching = asyncio.create_task(_fetch(source[0], download))

        async def wait_verified() -> None:
            await asyncio.shield(fetching)

        calls, repository = target
        upload = Upload(
            calls,
            repository,
            blob.digest,
            blob.size,
            lambda start: _reading(file, download, start, blob.size),
            wait_verified,
        )
        sending = asyncio.create_task(calls.repeat(upload.go_on))
        tasks = (fetching, sending)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in tasks:
                if task.done():
                    task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _fetch(calls: OciCalls, download: Download) -> None:
    await calls.repeat(download.go_on)
    download.check()


def _reading(file: Path, download: Download, start: int, size: int) -> Content:
    """Return the content of a file that is still growing, from an offset on."""

    async def read() -> AsyncIterator[bytes]:
        at = start
        with file.open("rb") as data:
            data.seek(at)
            while at < size:
                while download.arrived <= at:
                    download.grown.clear()
                    await download.grown.wait()
                most = min(_CHUNK, download.arrived - at)
                chunk = await asyncio.to_thread(data.read, most)
                at += len(chunk)
                yield chunk

    return read
