"""Blobs as files of one folder: written aside, synced, then renamed into place."""

import asyncio
import contextlib
import errno
import fcntl
import os
import stat
import tempfile
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from exclave.base.errors import Unavailable
from exclave.base.logs import Log
from exclave.domain.quotas import DiskFull
from exclave.storage.blobs.base import (
    CHUNK,
    check_folder,
    check_key,
    clashing_key,
    is_key,
    missing_blob,
    regroup,
)
from exclave.storage.engine.disk import Disk, is_vital

log = Log("blobs")
T = TypeVar("T")

_ASIDE = "tmp@"
"""Where files are while they are written; `@` cannot be in a key, so no blob lives there."""

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_PUBLISH_TRIES = 5
_READERS = 8


class FileBlobs:
    """Blobs in a folder of this machine; a key is the path of its file.

    All changes are made by one thread, a piece at a time, and each piece is synced: the database
    usually is on the same disk, and a commit waits for everything that others are syncing.

    `inline` works in the calling thread, for simulations on virtual time. `durable=False` skips
    every fsync: blobs survive the death of the process, not the loss of power. `disk` refuses
    what would use up the space that is kept for the database.
    """

    def __init__(
        self, folder: Path, *, inline: bool = False, durable: bool = True, disk: Disk | None = None
    ) -> None:
        self._folder = folder
        self._disk = disk
        self._aside = folder / _ASIDE
        self._durable = durable
        self._anchored = {folder}
        self._readers = None if inline else ThreadPoolExecutor(_READERS, "blob-reader")
        self._writer = None if inline else ThreadPoolExecutor(1, "blob-writer")
        with _telling("open the blob folder", str(folder)):
            self._aside.mkdir(parents=True, exist_ok=True)
            _sweep(self._aside)
            if durable:
                _sync_folder(folder.parent)

    async def put(self, key: str, data: bytes) -> None:
        """Store the bytes: all of them or none, and durably once this returns."""
        target = self._folder / check_key(key)
        await self._change(lambda: self._write(key, target, data))

    async def put_stream(self, key: str, chunks: AsyncIterable[bytes]) -> None:
        """Store what comes piece by piece: all of it or nothing."""
        target = self._folder / check_key(key)
        aside = await self._change(
            lambda: _Aside(key, self._aside, self._disk, durable=self._durable)
        )
        try:
            async for chunk in regroup(chunks):
                await self._change(partial(aside.write, chunk))
            await self._change(lambda: self._finish(aside, target))
        except BaseException:
            aside.remove()
            raise
        finally:
            aside.close()

    async def get(self, key: str) -> bytes:
        """Read a blob; a missing one is `NotFound`."""
        target = self._folder / check_key(key)
        return await self._read(lambda: _read(key, target))

    async def read(self, key: str, start: int = 0, size: int | None = None) -> AsyncIterator[bytes]:
        """Read a blob, or a part of it, piece by piece."""
        target = self._folder / check_key(key)
        fd = await self._read(lambda: _open(key, target))
        try:
            end = os.fstat(fd).st_size
            end = end if size is None else min(end, start + size)
            for at in range(start, end, CHUNK):
                yield await self._read(partial(_read_at, key, fd, min(CHUNK, end - at), at))
        finally:
            os.close(fd)

    async def delete(self, key: str) -> None:
        """Remove a blob, and the folders that it leaves empty; a missing one is fine."""
        target = self._folder / check_key(key)
        await self._change(lambda: self._remove(key, target))

    async def list_keys(self, folder: str = "") -> list[str]:
        """List the keys below a folder, sorted."""
        top = self._folder / check_folder(folder)
        return await self._read(lambda: self._walk(top))

    async def close(self) -> None:
        """Finish what is under way and end the threads."""
        for pool in (self._writer, self._readers):
            if pool is not None:
                await asyncio.to_thread(pool.shutdown)

    async def _read(self, work: Callable[[], T]) -> T:
        return await _run(self._readers, work)

    async def _change(self, work: Callable[[], T]) -> T:
        return await _run(self._writer, work)

    def _write(self, key: str, target: Path, data: bytes) -> None:
        aside = _Aside(key, self._aside, self._disk, durable=self._durable)
        try:
            aside.write(data)
            self._finish(aside, target)
        except BaseException:
            aside.remove()
            raise
        finally:
            aside.close()

    def _finish(self, aside: "_Aside", target: Path) -> None:
        with _telling("store blob", aside.key):
            if self._durable:
                os.fsync(aside.fd)
            try:
                self._publish(aside.path, target)
            except (NotADirectoryError, IsADirectoryError, FileExistsError) as error:
                raise clashing_key(aside.key) from error
            if self._durable:
                self._anchor(target.parent)

    def _publish(self, aside: Path, target: Path) -> None:
        # Another thread or process may remove the folder between mkdir and rename, because it
        # just deleted the last blob in it.
        for _ in range(_PUBLISH_TRIES):
            try:
                aside.replace(target)
            except FileNotFoundError:
                target.parent.mkdir(parents=True, exist_ok=True)
            else:
                return
        aside.replace(target)

    def _anchor(self, folder: Path) -> None:
        """Make the new name durable, and the names of the folders that lead to it.

        It happens after the rename, whoever made the folder: a blob must not be reported stored
        while the folder that another put has just made for both is not yet on disk.
        """
        _sync_folder(folder)
        while folder not in self._anchored:
            _sync_folder(folder.parent)
            self._anchored.add(folder)
            folder = folder.parent

    def _remove(self, key: str, target: Path) -> None:
        with _telling("delete blob", key):
            try:
                target.unlink()
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
                return
            if self._durable:
                _sync_folder(target.parent)
            self._prune(target.parent)

    def _prune(self, folder: Path) -> None:
        with contextlib.suppress(OSError):  # not empty, or another delete was faster
            while folder != self._folder:
                self._anchored.discard(folder)
                folder.rmdir()
                folder = folder.parent

    def _walk(self, top: Path) -> list[str]:
        with _telling("list blobs in", str(top)):
            paths = (
                Path(at, name) for at, _, names in os.walk(top, onerror=_fail) for name in names
            )
            keys = (path.relative_to(self._folder).as_posix() for path in paths)
            return sorted(key for key in keys if is_key(key))


class _Aside:
    """A file that nobody sees yet, and that the next start removes if we die."""

    def __init__(self, key: str, folder: Path, disk: Disk | None, *, durable: bool) -> None:
        self.key = key
        self._disk = disk
        self._durable = durable
        if disk is not None:
            disk.check(key, 0)
        with _telling("store blob", key):
            self.fd, name = _make_locked(folder)
        self.path = Path(name)

    def write(self, data: bytes) -> None:
        """Append, and sync every full piece."""
        if self._disk is not None:
            self._disk.check(self.key, len(data))
        with _telling("store blob", self.key):
            for start in range(0, len(data), CHUNK):
                left = memoryview(data)[start : start + CHUNK]
                is_full = len(left) == CHUNK
                while left:
                    left = left[os.write(self.fd, left) :]
                if self._durable and is_full:
                    os.fdatasync(self.fd)

    def remove(self) -> None:
        """Delete the file, unless it was renamed into place."""
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file, which releases its lock."""
        os.close(self.fd)


async def _run(pool: ThreadPoolExecutor | None, work: Callable[[], T]) -> T:
    if pool is None:
        return work()
    return await asyncio.get_running_loop().run_in_executor(pool, work)


def _make_locked(folder: Path) -> tuple[int, str]:
    """Make a file under the lock that tells `_sweep`, maybe of another process, that we live.

    A sweep may come between making and locking; then the file has lost its name: make another.
    """
    while True:
        fd, name = tempfile.mkstemp(dir=folder)
        fcntl.flock(fd, fcntl.LOCK_EX)
        if os.fstat(fd).st_nlink:
            return fd, name
        os.close(fd)


def _sweep(folder: Path) -> None:
    """Remove what dead writers left behind; a file that is being written is locked."""
    for path in folder.iterdir():
        with contextlib.suppress(FileNotFoundError, BlockingIOError), path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()


def _read(key: str, target: Path) -> bytes:
    with _telling("read blob", key):
        try:
            return target.read_bytes()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            raise missing_blob(key) from None


def _open(key: str, target: Path) -> int:
    with _telling("read blob", key):
        try:
            fd = os.open(target, os.O_RDONLY)
        except (FileNotFoundError, NotADirectoryError):
            raise missing_blob(key) from None
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            os.close(fd)
            raise missing_blob(key)
        return fd


def _read_at(key: str, fd: int, size: int, at: int) -> bytes:
    with _telling("read blob", key):
        return os.pread(fd, size, at)


def _sync_folder(folder: Path) -> None:
    try:
        fd = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:  # pruned by a delete of the last blob in it: nothing left to keep
        return
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _fail(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error


@contextlib.contextmanager
def _telling(what: str, name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        # The key is for the operator: it names a tenant's org and how we keep things.
        log.error("blob_store_failed", deed=what, name=name, error=error.strerror or str(error))
        if error.errno in _FULL and not is_vital(name):
            raise DiskFull("the disk of the control plane is full") from error
        raise Unavailable(
            f"the blob store cannot {what}: {error.strerror or type(error).__name__}",
            hint="Try again later. The server's log says more to the operator: check the free"
            " space, the permissions and the health of the data folder's disk.",
        ) from error
