"""Brings a runner program onto the machine: fetched, verified, unpacked, started once to see."""

import asyncio
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from exclave.client.downloads import download_file
from exclave.client.transport import Link
from exclave.runner.cloud.program_folders import ProgramFolders, ProgramWrong

_MOST_BYTES: Final = 256 << 20
_WITHIN_S: Final = 900.0
_TRY_WITHIN_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class ProgramFetch:
    """Programs for one kind of machine, from the customer's mirror or the control plane."""

    folders: ProgramFolders
    machine: str
    read_mirror: Callable[[], str] = str

    async def prepare(self, link: Link, version: str, digest: str) -> None:
        """Fetch a program unless it is there, and see whether it starts on this machine."""
        folder = self.folders.find(digest)
        if not folder.is_dir():
            archive = folder.with_suffix(".archive")
            mirror = self.read_mirror()
            source = replace(link, url=mirror or f"{link.url.rstrip('/')}/v1/stacks/package")
            name = f"runner-{version}-{self.machine}.tar.gz"
            try:
                await download_file(source, name, archive, most=_MOST_BYTES, within_s=_WITHIN_S)
                await asyncio.to_thread(self.folders.unpack, archive, digest)
            finally:
                archive.unlink(missing_ok=True)
        await _try_program(folder, version)


async def _try_program(folder: Path, version: str) -> None:
    """Raise unless the program starts and says that it is this version."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", str(folder / "launch.py"), "--version"),
        cwd="/",
        env={"PATH": os.defpath, "HOME": "/"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        printed, _ = await asyncio.wait_for(process.communicate(), _TRY_WITHIN_S)
    except TimeoutError as error:
        process.kill()
        await process.wait()
        raise ProgramWrong("the program does not start on this machine in time") from error
    if process.returncode or printed.decode(errors="replace").split()[-1:] != [version]:
        raise ProgramWrong(f"the program does not start on this machine: {printed[-500:]!r}")
