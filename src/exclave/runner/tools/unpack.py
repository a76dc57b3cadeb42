"""Extracts the one program from a vendor's file, and nothing else of it."""

import gzip
import os
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO, cast

from exclave.base.errors import Problem
from exclave.runner.tools.catalog import Packing, Vendor

MOST_BYTES = 512 << 20
"""The size to which an archive may unpack."""
_CHUNK = 1 << 20
_UNREADABLE = (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError)


class PackageWrong(Problem):
    """The downloaded file is not the archive that the vendor publishes."""

    code = "package_wrong"
    hint = "Do not use the file. Check the mirror and the proxy."


def unpack_tool(vendor: Vendor, version: str, package: Path, folder: Path) -> Path:
    """Put the program into the folder, executable, and remove the package."""
    target = folder / vendor.name
    member = vendor.fill(vendor.member or vendor.name, version)
    match vendor.packing:
        case Packing.PROGRAM:
            package.replace(target)
        case Packing.ZIP:
            with _open_zip(package, member) as source:
                _copy(source, target, package)
        case Packing.TAR_GZ:
            with _open_tar(package, member) as source:
                _copy(source, target, package)
    package.unlink(missing_ok=True)
    os.chmod(target, 0o755)  # noqa: PTH101, S103 - a program that the runner starts
    return target


@contextmanager
def _open_zip(package: Path, member: str) -> Iterator[IO[bytes]]:
    try:
        with zipfile.ZipFile(package) as archive, archive.open(member) as source:
            yield source
    except KeyError:
        raise _describe_missing(package, member) from None
    except _UNREADABLE as error:
        raise PackageWrong(f"`{package.name}` is not a readable zip archive: {error}") from error


@contextmanager
def _open_tar(package: Path, member: str) -> Iterator[IO[bytes]]:
    try:
        with gzip.open(package) as plain:
            bounded = cast("BinaryIO", _Bounded(cast("BinaryIO", plain), package))
            with tarfile.open(fileobj=bounded, mode="r|") as archive:
                yield _find_member(archive, package, member)
    except _UNREADABLE as error:
        raise PackageWrong(f"`{package.name}` is not a readable tar.gz archive: {error}") from error


def _find_member(archive: tarfile.TarFile, package: Path, member: str) -> IO[bytes]:
    """Return the content of the regular file of exactly this name; links are not followed."""
    for entry in archive:
        if entry.name == member and entry.isreg():
            content = archive.extractfile(entry)
            if content is not None:
                return content
    raise _describe_missing(package, member)


def _describe_missing(package: Path, member: str) -> PackageWrong:
    return PackageWrong(f"`{package.name}` does not hold the program `{member}`")


def _copy(source: IO[bytes], target: Path, package: Path) -> None:
    bounded = _Bounded(source, package)
    with target.open("wb") as out:
        while chunk := bounded.read(_CHUNK):
            out.write(chunk)


class _Bounded:
    """Reads a stream and refuses one that unpacks to too much."""

    def __init__(self, source: IO[bytes], package: Path) -> None:
        self._source = source
        self._package = package
        self._left = MOST_BYTES

    def read(self, size: int) -> bytes:
        chunk = self._source.read(min(size, _CHUNK))
        self._left -= len(chunk)
        if self._left < 0:
            raise PackageWrong(f"`{self._package.name}` unpacks to more than {MOST_BYTES} bytes")
        return chunk
