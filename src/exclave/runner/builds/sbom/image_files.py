"""Reads the databases of package managers out of the layers of an image, within limits.

Layers are archives of tenants. They are read as streams, nothing is written to the disk, and names
are only compared.
"""

import posixpath
import tarfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from exclave.runner.builds.sbom.databases import OLD_RPM, find_kind

_WHITEOUT: Final = ".wh."
_OPAQUE: Final = ".wh..wh..opq"
_EXTENSIONS: Final = frozenset(
    {tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE}
    | {tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK}
)
_EXTENSION_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """How much of an image is read."""

    entries: int = 1_000_000
    file_bytes: int = 128 << 20
    kept_bytes: int = 256 << 20


class _LimitReached(Exception):  # noqa: N818 - says what happened, like `Problem`
    """A layer has more than is read."""


class _SafeHeader(tarfile.TarInfo):
    """An entry whose long names and attributes cannot fill the memory."""

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        if self.type in _EXTENSIONS and self.size > _EXTENSION_BYTES:
            raise _LimitReached
        return super()._proc_member(archive)  # type: ignore[misc,no-any-return]


@dataclass(slots=True)
class ImageFiles:
    """The databases of an image, as its layers leave them."""

    limits: ReadLimits = ReadLimits()
    files: dict[str, bytes] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    """What could not be read."""
    entries: int = 0

    def read_layers(self, layers: Iterable[Path], check: Callable[[], None]) -> None:
        """Read layers from the lowest to the highest; `check` is called now and then."""
        for number, layer in enumerate(layers, 1):
            try:
                self._read_layer(layer, check)
            except _LimitReached:
                self.notes.append(f"layer {number} has more than is read")
            except (tarfile.TarError, zlib.error, EOFError, OSError, ValueError) as error:
                self.notes.append(f"layer {number} cannot be read: {type(error).__name__}")

    def _read_layer(self, layer: Path, check: Callable[[], None]) -> None:
        # What a layer removes is of the layers below, wherever in the archive it says so.
        below, added = self.files, dict[str, bytes]()
        with tarfile.open(layer, mode="r|*", tarinfo=_SafeHeader) as archive:
            for entry in archive:
                self.entries += 1
                if self.entries > self.limits.entries:
                    raise _LimitReached
                if self.entries % 1000 == 1:
                    check()
                path = posixpath.normpath("/" + entry.name).lstrip("/")
                if posixpath.basename(path).startswith(_WHITEOUT):
                    below = _remove(below, path)
                elif entry.isfile() and (kind := find_kind(path)) == OLD_RPM:
                    self.notes.append("the database of rpm has an old format and is not read")
                elif entry.isfile() and kind:
                    added[path] = self._read_file(archive, entry, added)
                archive.members = []  # type: ignore[attr-defined] # it would keep all of them
        self.files = below | added

    def _read_file(
        self, archive: tarfile.TarFile, entry: tarfile.TarInfo, added: dict[str, bytes]
    ) -> bytes:
        kept = sum(map(len, added.values())) + sum(map(len, self.files.values()))
        opened = archive.extractfile(entry)
        if entry.size > self.limits.file_bytes or kept + entry.size > self.limits.kept_bytes:
            raise _LimitReached
        return b"" if opened is None else opened.read()


def _remove(files: dict[str, bytes], path: str) -> dict[str, bytes]:
    """Return the files that a whiteout leaves."""
    folder, _, name = path.rpartition("/")
    below = f"{folder}/" if folder else ""
    if name == _OPAQUE:
        return {key: data for key, data in files.items() if not key.startswith(below)}
    gone = below + name.removeprefix(_WHITEOUT)
    return {
        key: data for key, data in files.items() if key != gone and not key.startswith(f"{gone}/")
    }
