"""Secrets of a build: given to a Dockerfile by file, and searched for in what it made."""

import asyncio
import zlib
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Final

from exclave.base.secrets import Secret
from exclave.runner.builds.recipe import BuildWork
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason

_CHUNK: Final = 1 << 20
_LEAST: Final = 6
"""Shorter values are found by chance."""
_GZIP: Final = b"\x1f\x8b"


async def write_secrets(work: BuildWork, names: list[str]) -> Mapping[str, Path]:
    """Write the secrets that a Dockerfile may mount to files; return these by name."""
    values = await work.tools.secrets.fetch(names)
    if not values:
        return {}
    work.context.log.hide(values.values())
    work.context.log.system(f"secrets: {', '.join(sorted(values))}")
    folder = work.context.workspace.folder / "secrets"

    def write() -> Mapping[str, Path]:
        with work.context.workspace.touch():
            folder.mkdir(mode=0o700)
        for name, value in values.items():
            work.context.workspace.write(folder / name, value.reveal().encode())
        return {name: folder / name for name in values}

    return await asyncio.to_thread(write)


async def forget_secrets(work: BuildWork, files: Mapping[str, Path]) -> None:
    """Remove the files of the secrets."""

    def remove() -> None:
        with work.context.workspace.touch():
            for file in files.values():
                file.unlink(missing_ok=True)

    await asyncio.to_thread(remove)


async def refuse_leaks(work: BuildWork, layout: Path, names: list[str]) -> None:
    """Raise if a layer or the config of the image has the value of a secret in it."""
    leaked = await find_leak(work, layout / "blobs" / "sha256", names, of_job=True)
    if leaked:
        message = (
            f"the image would contain the secret `{leaked}`, for everybody to read: an"
            " instruction of the Dockerfile writes it to a file or a variable"
        )
        raise WorkFailed(Reason.SOURCE_INVALID, message)


async def find_leak(
    work: BuildWork, folder: Path, names: list[str], *, of_job: bool = False
) -> str:
    """Return the name of a secret whose value is in a file of a folder; empty if there is none.

    `of_job` says that the folder is the job's, and is read with the rights of its user.
    """
    values = await work.tools.secrets.fetch(names)
    if not values:
        return ""

    def search() -> str:
        with work.context.workspace.touch() if of_job else nullcontext():
            return _search(work, folder, values)

    return await asyncio.to_thread(search)


def _search(work: BuildWork, folder: Path, values: Mapping[str, Secret]) -> str:
    needles = {
        name: data
        for name, value in values.items()
        if len(data := value.reveal().encode()) >= _LEAST
    }
    longest = max((len(data) for data in needles.values()), default=0)
    for blob in sorted(folder.iterdir()):
        before = b""
        for piece in _read_plain(blob):
            work.context.check("the search for secrets")
            text = before + piece
            leaked = next((name for name, data in needles.items() if data in text), None)
            if leaked is not None:
                return leaked
            before = text[-longest:]
    return ""


def _read_plain(blob: Path) -> Iterator[bytes]:
    """Yield the content of a blob piece by piece, unpacked."""
    with blob.open("rb") as data:
        is_packed = data.read(len(_GZIP)) == _GZIP
        data.seek(0)
        unpack = zlib.decompressobj(wbits=31)
        while piece := data.read(_CHUNK):
            if not is_packed:
                yield piece
                continue
            while piece:
                yield unpack.decompress(piece, _CHUNK)
                piece = unpack.unconsumed_tail
