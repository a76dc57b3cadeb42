"""Safe access to the files of an app directory: size limits, and no links to foreign files."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from exclave.appconfig.diagnostics.codes import Code
from exclave.appconfig.diagnostics.report import Place, Report
from exclave.appconfig.diagnostics.sources import Source


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on what is read."""

    file_bytes: int = 4 * 1024 * 1024
    total_bytes: int = 16 * 1024 * 1024
    """Of all files whose text is read: TOML, and what it embeds."""
    files: int = 5000
    depth: int = 64
    entries: int = 50_000
    """Files and folders that are looked at; links can make few of them many."""


class Directory:
    """An app directory; every path argument is relative to it, with `/`.

    A symbolic link or `..` may lead out of it, because apps share files that way: as far as the
    repository around the app, or the parent folders if there is none. A sealed directory allows
    neither.
    """

    def __init__(self, root: Path, report: Report, limits: Limits, *, sealed: bool = False) -> None:
        self.root = Path(os.path.abspath(root))  # noqa: PTH100 - `resolve` would follow links
        self.report = report
        self.limits = limits
        self._real = os.path.realpath(self.root)
        self.sealed = sealed
        self._workspace = "" if sealed else _find_workspace(self._real)
        self._read = 0
        self._files = 0
        self._entries = 0
        self._cache: dict[tuple[str, bool], Source | None] = {}
        self.damaged: dict[str, Source] = {}
        """TOML files that are not UTF-8, as far as they can be read."""

    def has(self, path: str) -> bool:
        """Return whether a file exists and is not empty."""
        try:
            info = os.stat(self.root / path)  # noqa: PTH116 - one call for kind and size
        except (OSError, ValueError):
            return os.path.islink(self.root / path)  # noqa: PTH114 - a dangling link is a mistake
        return not stat.S_ISDIR(info.st_mode) and info.st_size > 0

    def has_folder(self, path: str) -> bool:
        """Return whether a folder exists."""
        return os.path.isdir(self.root / path)  # noqa: PTH112 - never raises

    def has_file(self, path: str) -> bool:
        """Return whether a file exists, in the directory or behind an allowed link."""
        if "\0" in path or path.startswith(("/", "~")):
            return False
        full = self.root / path
        if leaves(path) and not self.owns(os.path.realpath(full)):
            return False
        return os.path.exists(full) and not os.path.isdir(full)  # noqa: PTH110, PTH112 - never raise

    def list_names(self) -> list[str]:
        """Return the names directly in the directory."""
        return sorted(os.listdir(self.root))  # noqa: PTH208 - names are wanted

    def list_files(self, folder: str) -> list[str]:
        """Return the names of the files in a folder; empty if it cannot be listed."""
        try:
            with os.scandir(self.root / folder) as entries:
                return sorted(entry.name for entry in entries if entry.is_file())
        except (OSError, ValueError):
            return []

    def walk(self, folder: str) -> list[str]:
        """Return the `.toml` files below a folder, ordered by path."""
        if not self.has_folder(folder):
            return []
        return sorted(self._walk(folder, (), 0))

    def read(self, path: str, place: Place | str | None = None, *, toml: bool) -> Source | None:
        """Return a file as text; a failure is reported at the location that refers to it."""
        if (path, toml) not in self._cache:
            source = self._open(path, path if place is None else place, toml=toml)
            self._cache[path, toml] = source
        return self._cache[path, toml]

    def _walk(self, folder: str, seen: tuple[str, ...], depth: int) -> Iterator[str]:
        real = os.path.realpath(self.root / folder)
        if depth > self.limits.depth or real in seen:
            return
        if not self.owns(real):
            self.report.error(Code.FILE_OUTSIDE, folder, _outside(folder), _OUTSIDE_HINT)
            return
        try:
            entries = list(os.scandir(self.root / folder))
        except OSError as error:
            self.report.error(Code.FILE_UNREADABLE, folder, f"cannot list it: {error.strerror}")
            return
        self._entries += len(entries)
        if self._entries > self.limits.entries:
            self._report_many(self.limits.entries)
            return
        for entry in entries:
            path = f"{folder}/{entry.name}"
            if self.has_folder(path):
                yield from self._walk(path, (*seen, real), depth + 1)
            elif entry.name.endswith(".toml"):
                yield path

    def _open(self, path: str, place: Place | str, *, toml: bool) -> Source | None:
        report = self.report
        real = os.path.realpath(self.root / path)
        if not self.owns(real):
            report.error(Code.FILE_OUTSIDE, place, _outside(path), _OUTSIDE_HINT)
            return None
        self._files += 1
        if self._files > self.limits.files:
            self._report_many(self.limits.files)
            return None
        try:
            data = self._read_bytes(real)
            target = self._find_target(real, data or b"", toml=toml)
            if target:
                message = f"`{path}` holds the path of another file, which is read in its place"
                report.warn(Code.LINK_AS_TEXT, path, message, "Make it a symbolic link again.")
                data = self._read_bytes(target)
        except OSError as error:
            hint = "Is it a broken link, or a file that you may not read?"
            message = f"cannot read `{path}`: {error.strerror}"
            report.error(Code.FILE_UNREADABLE, place, message, hint)
            return None
        if data is None:
            report.error(
                Code.FILE_TOO_LARGE,
                place,
                self._explain_size(path),
                "Keep large files in a repository.",
            )
            return None
        return self._decode(path, data, place, toml=toml)

    def _explain_size(self, path: str) -> str:
        if self.limits.total_bytes - self._read < self.limits.file_bytes:
            return f"with `{path}` the files have more than {self.limits.total_bytes} bytes"
        return f"`{path}` is larger than the limit of {self.limits.file_bytes} bytes"

    def _find_target(self, real: str, data: bytes, *, toml: bool) -> str:
        """Return the target of a file that holds only a path (a link checked out as a file)."""
        if len(data) > _LONGEST_LINK or len(data.split()) != 1 or b"\0" in data or b"=" in data:
            return ""
        if not toml and not data.startswith((b"../", b"./")):
            return ""
        named = os.path.join(os.path.dirname(real), os.fsdecode(data.strip()))  # noqa: PTH118, PTH120 - `real` is text already
        target = os.path.realpath(named)
        return target if target != real and os.path.isfile(target) and self.owns(target) else ""  # noqa: PTH113

    def _report_many(self, limit: int) -> None:
        message = f"more than {limit} files belong to the app"
        self.report.error(Code.TOO_MANY_FILES, ".", message, "Is this the directory of one app?")

    def _read_bytes(self, real: str) -> bytes | None:
        """Return the bytes of a regular file, or None if it exceeds a limit."""
        info = os.stat(real)  # noqa: PTH116 - raises what the caller reports
        if not stat.S_ISREG(info.st_mode):
            raise OSError(0, "it is not a regular file")
        room = min(self.limits.file_bytes, self.limits.total_bytes - self._read)
        if info.st_size > room:
            return None
        with open(real, "rb") as file:  # noqa: PTH123 - `real` is text already
            data = file.read(room + 1)
        self._read += len(data)
        return data if len(data) <= room else None

    def _decode(self, path: str, data: bytes, place: Place | str, *, toml: bool) -> Source | None:
        if b"\0" in data:
            message = f"`{path}` is not text: it has bytes that are zero"
            self.report.error(Code.FILE_UNREADABLE, place, message, "Only text can be embedded.")
            return None
        try:
            text = data.decode("utf-8-sig" if toml else "utf-8")
        except UnicodeDecodeError as error:
            line = data[: error.start].count(b"\n") + 1
            message = f"`{path}` is not UTF-8 text (line {line})"
            tell = self.report.error if toml else self.report.warn
            tell(Code.FILE_UNREADABLE, place, message, "Save the file as UTF-8.")
            text = data.decode("utf-8", "replace")
            if toml:
                self.damaged[path] = Source(path, text, is_toml=True)
                return None
        return Source(path, text.replace("\r\n", "\n") if toml else text, is_toml=toml)

    def owns(self, real: str) -> bool:
        """Return whether the file behind a path, with links resolved, may belong to the app."""
        if _contains(self._real, real):
            return True
        if not self._workspace or not _contains(self._workspace, real):
            return False
        beyond = Path(os.path.relpath(real, self._workspace))
        return not any(part.startswith(".") for part in beyond.parts)


def leaves(path: str) -> bool:
    """Return whether a relative path leads out of its starting folder."""
    return os.path.normpath(path).split(os.sep, 1)[0] == ".." or path.startswith(("/", "~"))


_LONGEST_LINK = 1024
_OUTSIDE_HINT = "A link may lead to files of the same repository only; copy the file instead."


def _outside(path: str) -> str:
    return f"`{path}` is a link that leads out of the repository"


def _contains(folder: str, path: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _find_workspace(real: str) -> str:
    """Return the repository around a directory, or else two levels up; never a home or the root."""
    folder = Path(real)
    around = [folder, *folder.parents]
    for parent in around:
        if (parent / ".git").exists():
            return str(parent)
    home = os.path.expanduser("~")  # noqa: PTH111 - `home` raises where there is none
    allowed = [str(parent) for parent in around[1:3] if parent != Path(folder.anchor)]
    return next((parent for parent in reversed(allowed) if not _contains(parent, home)), "")
