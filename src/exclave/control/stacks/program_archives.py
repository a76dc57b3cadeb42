"""The runner program for machines in clouds: archives that the operator puts into a folder."""

import asyncio
import hashlib
import re
from functools import lru_cache
from pathlib import Path

from exclave import __version__
from exclave.base.errors import NotFound, Unavailable
from exclave.control.deps import Deps
from exclave.stacks.model import ProgramPins

ARCHIVE = re.compile(r"runner-[0-9A-Za-z][0-9A-Za-z.+]{0,60}-(x86_64|aarch64)\.tar\.gz")
_CHUNK = 1 << 20


class NoProgram(Unavailable):
    """The server has no runner program that a machine in a cloud could fetch."""

    code = "no_program"
    hint = (
        "Make the archives with `exclave server bundle --out DIR`, and name the folder in"
        " EXCLAVE_BUNDLES."
    )


async def load_pins(deps: Deps) -> ProgramPins:
    """Return the hashes of the archives of this version; raise `NoProgram` if one is missing."""
    if deps.bundles is None:
        raise NoProgram("this server has no runner program for machines in clouds")
    return await asyncio.to_thread(_read_pins, deps.bundles)


def find_archive(deps: Deps, file: str) -> Path:
    """Return the path of an archive by its name; older versions are served as well."""
    if deps.bundles is not None and ARCHIVE.fullmatch(file):
        path = deps.bundles / file
        if path.is_file():
            return path
    raise NotFound("there is no such file", hint="Ask the vendor for a new Stack.")


def _read_pins(folder: Path) -> ProgramPins:
    hashes = {}
    for machine in ("x86_64", "aarch64"):
        path = folder / f"runner-{__version__}-{machine}.tar.gz"
        try:
            about = path.stat()
            hashes[machine] = _hash_file(path, about.st_mtime_ns, about.st_size)
        except OSError as error:
            raise NoProgram(f"`{path.name}` is missing from the folder of archives") from error
    return ProgramPins(__version__, hashes["x86_64"], hashes["aarch64"])


@lru_cache(8)
def _hash_file(path: Path, changed: int, size: int) -> str:
    """Return the SHA-256 of a file, which is read again only if it changed."""
    del changed, size
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
