"""The shared provider cache: one `init` at a time per machine, no incomplete packages."""

import asyncio
import fcntl
import json
import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from exclave.base.clock import Clock
from exclave.base.logs import Log
from exclave.runner.data_folder import write_durably

_log = Log("runner.plugin_cache")

_LOCK = ".exclave.lock"
_BEFORE = ".exclave.before"
_PAUSE_S = 0.1
_PACKAGES = "*/*/*/*/*"
"""A pattern for packages: host, namespace, type, version, platform. Terraform trusts them."""


class PluginCache:
    """Guards the folder, because Terraform neither locks it nor verifies its content."""

    def __init__(self, folder: Path | None, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        self._mine = asyncio.Lock()

    @asynccontextmanager
    async def turn(self, check: Callable[[], None]) -> AsyncIterator[None]:
        """Wait for this job's turn; if the block fails, remove the packages that it added.

        `check` is called while it waits, and may raise.
        """
        if self._folder is None:
            yield
            return
        async with self._mine:
            handle = await self._lock(self._folder, check)
            try:
                _clean(self._folder)
                _note(self._folder)
                try:
                    yield
                except BaseException:
                    _clean(self._folder)
                    raise
                (self._folder / _BEFORE).unlink()
            finally:
                os.close(handle)

    async def _lock(self, folder: Path, check: Callable[[], None]) -> int:
        """Lock the folder against other runners on this machine, without blocking a thread."""
        handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            while True:
                check()
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    await self._clock.sleep(_PAUSE_S)
                else:
                    return handle
        except BaseException:
            os.close(handle)
            raise


def _note(folder: Path) -> None:
    """Record which packages are complete, for recovery after a crash."""
    write_durably(folder / _BEFORE, json.dumps(sorted(_list_packages(folder))).encode())


def _clean(folder: Path) -> None:
    """Remove packages that an interrupted `init` has added."""
    note = folder / _BEFORE
    try:
        whole = set(json.loads(note.read_bytes()))
    except FileNotFoundError:
        return
    except ValueError:
        whole = set()
    for name in set(_list_packages(folder)) - whole:
        _log.warning("package_removed", package=name)
        package = folder / name
        if package.is_symlink():
            package.unlink()
        else:
            shutil.rmtree(package)
    note.unlink()


def _list_packages(folder: Path) -> Iterator[str]:
    return (str(package.relative_to(folder)) for package in folder.glob(_PACKAGES))
