"""Packing of an app directory into the archive that a sync uploads."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import BinaryIO, Final

from exclave.appconfig.diagnostics.report import Report
from exclave.appconfig.reading.directory import Directory, Limits
from exclave.base.archives import LEFT_OUT, ArchiveLimits, ArchiveProblem, pack_folder
from exclave.base.errors import InvalidInput

UPLOAD_LIMITS: Final = ArchiveLimits(total_bytes=64 << 20, file_bytes=64 << 20, files=10_000)
"""The limits of an app directory, including source folders."""
INSTALLS: Final = "installs"
"""The folder of install configs, which `installs sync` reads."""


def pack_app(directory: Path, out: BinaryIO) -> str:
    """Write an app directory as a deterministic archive and return its digest.

    Links to other files of the repository, by which apps share files, are replaced by their
    targets. Install configs are left out: they are not part of the app, and may be secret.
    """
    if not directory.is_dir():
        hint = "Name the directory of an app."
        raise InvalidInput(f"there is no directory `{directory}`", hint=hint)
    with tempfile.TemporaryDirectory(prefix="exclave-app-") as staging:
        root = directory
        if _has_far_links(directory) or (directory / INSTALLS).is_dir():
            root = Path(staging, "app")
            _StagingCopy(directory).copy(directory, root, ())
        return pack_folder(root, out, limits=UPLOAD_LIMITS)


def _has_far_links(directory: Path) -> bool:
    real = os.path.realpath(directory)
    for folder, names, files in os.walk(directory):
        names[:] = [name for name in names if name not in LEFT_OUT]
        links = (Path(folder, name) for name in (*names, *files) if name not in LEFT_OUT)
        if any(link.is_symlink() and _leads_far(link, real) for link in links):
            return True
    return False


def _leads_far(link: Path, root: str) -> bool:
    """Return whether a link leads out of the directory, or is absolute."""
    return link.readlink().is_absolute() or not _is_below(os.path.realpath(link), root)


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


class _StagingCopy:
    """Copies a directory, with far links replaced by their targets."""

    def __init__(self, directory: Path) -> None:
        self._owner = Directory(directory, Report(), Limits())
        self._root = os.path.realpath(directory)
        self._left = UPLOAD_LIMITS.total_bytes

    def copy(self, folder: Path, target: Path, seen: tuple[str, ...]) -> None:
        """Copy a folder."""
        real = os.path.realpath(folder)
        if real in seen:
            raise ArchiveProblem(f"the link `{folder}` leads back to a folder around it")
        target.mkdir(parents=True)
        with os.scandir(folder) as entries:
            ordered = list(entries)
        for entry in ordered:
            if entry.name not in LEFT_OUT and (seen or entry.name != INSTALLS):
                self._copy_entry(entry, target / entry.name, (*seen, real))

    def _copy_entry(self, entry: os.DirEntry[str], target: Path, seen: tuple[str, ...]) -> None:
        path = Path(entry.path)
        if entry.is_symlink() and self._stays(path):
            target.symlink_to(path.readlink())
        elif entry.is_dir():
            self.copy(path, target, seen)
        else:
            self._left -= path.stat().st_size
            if self._left < 0:
                limit = UPLOAD_LIMITS.total_bytes
                raise ArchiveProblem(f"the files together have more than {limit} bytes")
            shutil.copy2(path, target)

    def _stays(self, link: Path) -> bool:
        """Return whether a link is kept: it stays inside, or packing must refuse it."""
        near = _is_below(os.path.realpath(link.parent), self._root)
        if near and not _leads_far(link, self._root):
            return True
        return not (link.exists() and self._owner.owns(os.path.realpath(link)))
