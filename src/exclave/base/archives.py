"""Deterministic tar archives of folders, and safe unpacking that writes only below the target."""

import hashlib
import io
import os
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, ClassVar, NoReturn

from exclave.base.errors import Kind, Problem

LEFT_OUT = frozenset({".git", ".terraform"})
"""Names that are never packed: what tools keep there is theirs, large and not reproducible."""

_CHUNK = 1 << 20
_END_BYTES = 1024
_MIB = 1 << 20
_EXTENSIONS = frozenset(
    {
        tarfile.XHDTYPE,
        tarfile.XGLTYPE,
        tarfile.SOLARIS_XHDTYPE,
        tarfile.GNUTYPE_LONGNAME,
        tarfile.GNUTYPE_LONGLINK,
    }
)
_EXTENSION_BYTES = 64 << 10
_EXECUTABLE, _PLAIN, _FOLDER = 0o755, 0o644, 0o755


class ArchiveProblem(Problem):
    """A folder that cannot be packed, or an archive that is not safe to unpack."""

    kind: ClassVar = Kind.INVALID
    code: ClassVar = "archive_invalid"
    hint: ClassVar = "Pack regular files, and links that stay inside the folder."


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """Limits of an archive; what packs under these limits also unpacks under them."""

    total_bytes: int = 256 * _MIB
    """All files together, and at the same time the archive itself."""
    file_bytes: int = 128 * _MIB
    files: int = 20_000
    depth: int = 40
    """Most folders above a file, and one for itself."""
    path_bytes: int = 1000
    name_bytes: int = 255


DEFAULT_LIMITS = ArchiveLimits()


def pack_folder(root: Path, out: BinaryIO, *, limits: ArchiveLimits = DEFAULT_LIMITS) -> str:
    """Write a folder as a deterministic tar and return its digest, `sha256:…`.

    Names are sorted; times, owners and all of the mode but "executable" are left out, and so are
    empty folders, as in git.
    """
    sink = _HashingWriter(out)
    with tarfile.open(fileobj=sink, mode="w|", format=tarfile.PAX_FORMAT, encoding="utf-8") as tar:
        total = 0
        for count, (name, path) in enumerate(sorted(_walk(root, "", limits)), start=1):
            if count > limits.files:
                _refuse(f"there are more than {limits.files} files")
            total += _add_entry(tar, name.decode(), path, limits)
            if total > limits.total_bytes:
                _refuse(f"the files together have more than {limits.total_bytes} bytes")
    return f"sha256:{sink.hash.hexdigest()}"


def digest_folder(root: Path, *, limits: ArchiveLimits = DEFAULT_LIMITS) -> str:
    """Return the digest that `pack_folder` would return, without writing an archive."""
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 - it is no path of ours
        return pack_folder(root, nowhere, limits=limits)


def unpack_archive(data: BinaryIO, target: Path, *, limits: ArchiveLimits = DEFAULT_LIMITS) -> None:
    """Unpack a tar into a new or empty folder: all of it, or nothing if any entry is refused.

    Only regular files, folders and links that stay inside are accepted.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_symlink() or (target.exists() and (not target.is_dir() or any(target.iterdir()))):
        _refuse(f"`{target.name}` is not an empty folder")
    partial = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=target.parent))
    try:
        _extract(_LimitedReader(data, _allowance(limits)), partial, limits)
        partial.rename(target)
    except (tarfile.TarError, ValueError, OverflowError, RecursionError) as error:
        message = "this is not a complete tar archive"
        raise ArchiveProblem(message) from error
    finally:
        with suppress(FileNotFoundError):
            shutil.rmtree(partial)


def _walk(folder: Path, prefix: str, limits: ArchiveLimits) -> Iterator[tuple[bytes, Path]]:
    """Yield files and links ordered by their UTF-8 names, which is the same on every machine."""
    with os.scandir(folder) as scan:
        entries = [entry for entry in scan if entry.name not in LEFT_OUT]
    for entry in entries:
        name = prefix + entry.name
        _check_name(name, limits)
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(Path(entry.path), f"{name}/", limits)
        else:
            yield name.encode(), Path(entry.path)


def _add_entry(tar: tarfile.TarFile, name: str, path: Path, limits: ArchiveLimits) -> int:
    facts = path.lstat()
    info = tarfile.TarInfo(name)
    if stat.S_ISLNK(facts.st_mode):
        info.type, info.mode, info.linkname = tarfile.SYMTYPE, 0o777, str(path.readlink())
        _check_link(name, info.linkname, limits)
        tar.addfile(info)
        return 0
    if not stat.S_ISREG(facts.st_mode):
        _refuse(f"`{name}` is neither a file nor a folder nor a link")
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
        info.size = _check_size(name, os.fstat(file.fileno()).st_size, limits)
        info.mode = _EXECUTABLE if facts.st_mode & stat.S_IXUSR else _PLAIN
        try:
            tar.addfile(info, file)
        except OSError as error:
            if error.errno is not None:
                raise
            _refuse(f"`{name}` changed while it was packed")
        if file.read(1):
            _refuse(f"`{name}` changed while it was packed")
    return info.size


def _extract(data: "_LimitedReader", root: Path, limits: ArchiveLimits) -> None:
    names: dict[str, bool] = {}
    links: list[tuple[Path, str]] = []
    made = {""}
    total = 0
    # A stream is never seeked: a forged header cannot make the reader go back.
    with tarfile.open(fileobj=data, mode="r|", encoding="utf-8", tarinfo=_Header) as tar:
        for count, member in enumerate(tar, start=1):
            if count > 2 * limits.files:  # up to half of them may be folders
                _refuse(f"there are more than {limits.files} files")
            name = member.name.removeprefix("./").rstrip("/")
            if member.isdir() and name in {"", "."}:
                continue
            _check_name(name, limits)
            _claim_name(names, name, folder=member.isdir())
            if len(names) > 2 * limits.files:
                _refuse(f"there are more than {2 * limits.files} files and folders")
            path = root / name
            _make_folders(root, made, name if member.isdir() else name.rpartition("/")[0])
            if member.issym():
                _check_link(name, member.linkname, limits)
                links.append((path, member.linkname))
            elif member.type in {tarfile.REGTYPE, tarfile.AREGTYPE} and not member.issparse():
                total += _check_size(name, member.size, limits)
                if total > limits.total_bytes:
                    _refuse(f"the files together have more than {limits.total_bytes} bytes")
                _write_file(tar, member, path)
            elif not member.isdir():
                _refuse(f"`{name}` is neither a file nor a folder nor a link")
        data.check_end(tar.offset)
    for path, linkname in links:  # last of all, so that nothing is written through one
        path.symlink_to(linkname)


def _make_folders(root: Path, made: set[str], folder: str) -> None:
    """Create a folder and its parents, each once."""
    if folder not in made:
        (root / folder).mkdir(_FOLDER, parents=True, exist_ok=True)
        made.add(folder)


def _claim_name(names: dict[str, bool], name: str, *, folder: bool) -> None:
    """Record a name and its folders; raise on a duplicate, or on a name of two types."""
    around = name
    while around := around.rpartition("/")[0]:
        if names.get(around):
            break  # and so are all folders above it
        if around in names:
            _refuse(f"`{around}` is a file and a folder")
        names[around] = True
    if name in names and not (folder and names[name]):
        _refuse(f"`{name}` is there twice")
    names[name] = folder


def _write_file(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    source = tar.extractfile(member)
    if source is None:
        _refuse(f"`{member.name}` has no content")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "wb") as out:
        shutil.copyfileobj(source, out, _CHUNK)
        if out.tell() != member.size:
            _refuse("the archive ends in the middle of a file")
        os.fchmod(out.fileno(), _EXECUTABLE if member.mode & stat.S_IXUSR else _PLAIN)


def _check_name(name: str, limits: ArchiveLimits) -> None:
    shown = ascii(name[:200])
    try:
        length = len(name.encode())
    except UnicodeEncodeError:
        _refuse(f"the name {shown} is not valid UTF-8")
    if any(ord(char) < ord(" ") or ord(char) == 0x7F for char in name):  # noqa: PLR2004 - DEL
        _refuse(f"the name {shown} has control characters")
    parts = name.split("/")
    if any(part in {"", ".", ".."} for part in parts):
        _refuse(f"the name {shown} is not a plain relative path")
    if length > limits.path_bytes or any(len(part.encode()) > limits.name_bytes for part in parts):
        _refuse(f"the name {shown} is too long")
    if len(parts) > limits.depth:
        _refuse(f"the name {shown} is nested too deep: at most {limits.depth} levels")


def _check_link(name: str, linkname: str, limits: ArchiveLimits) -> None:
    """Raise unless a link climbs to parent folders first and then only descends.

    `..` after a name is refused, because that name could be a link itself.
    """
    parts = linkname.split("/")
    ups = 0
    while ups < len(parts) and parts[ups] == "..":
        ups += 1
    if not linkname or linkname.startswith("/") or ups > name.count("/"):
        _refuse(f"the link `{name}` leads outside: `{linkname[:200]}`")
    rest = "/".join(part for part in parts[ups:] if part not in {"", "."})
    if rest:
        _check_name(rest, limits)


def _check_size(name: str, size: int, limits: ArchiveLimits) -> int:
    if not 0 <= size <= limits.file_bytes:
        _refuse(f"`{name}` has {size} bytes; at most {limits.file_bytes} are allowed")
    return size


def _allowance(limits: ArchiveLimits) -> int:
    """Return the maximum size of an archive: its files, and headers and padding for each."""
    return limits.total_bytes + limits.files * (4096 + 2 * limits.path_bytes) + _MIB


class _Header(tarfile.TarInfo):
    """A header that refuses long extended headers, because those are read into memory."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> "_Header":
        """Read one header block."""
        header = super().frombuf(buf, encoding, errors)
        if header.type in _EXTENSIONS and not 0 <= header.size <= _EXTENSION_BYTES:
            _refuse("the archive has an oversized header")
        return header


class _HashingWriter(io.RawIOBase):
    """Passes bytes on and hashes them."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self.hash = hashlib.sha256()

    def write(self, data: bytes) -> int:  # type: ignore[override] # tarfile hands in bytes
        self.hash.update(data)
        return self._out.write(data)


class _LimitedReader(io.RawIOBase):
    """Reads at most a number of bytes, and tracks whether they ended in zeros."""

    def __init__(self, data: BinaryIO, most: int) -> None:
        self._data = data
        self._most = most
        self._count = 0
        self._zeros = 0

    def read(self, size: int = -1) -> bytes:
        chunk = self._data.read(_CHUNK if size < 0 else size)
        self._count += len(chunk)
        if self._count > self._most:
            _refuse(f"the archive is larger than {self._most} bytes")
        tail = len(chunk) - len(chunk.rstrip(b"\0"))
        self._zeros = self._zeros + tail if tail == len(chunk) else tail
        return chunk

    def check_end(self, offset: int) -> None:
        """Raise if an archive is truncated: it must end with two blocks of zeros."""
        while self.read(_CHUNK):
            pass
        if self._count - offset < _END_BYTES or self._zeros < self._count - offset:
            _refuse("the archive is cut off, or something follows its end")


def _refuse(message: str) -> NoReturn:
    raise ArchiveProblem(message)
