"""`prctl` calls that the standard library lacks."""

import ctypes
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SUBREAPER = 36
_NO_NEW_PRIVILEGES = 38
_KEEP = 0xFFFFFFFF
_NEW_USER_NAMESPACE = 0x10000000
_libc = ctypes.CDLL(None, use_errno=True)


def is_linux() -> bool:
    """Return whether these calls exist on this system."""
    return sys.platform == "linux"


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent dies."""
    _control(_SUBREAPER)


def bind_child(
    cgroup: int | None, *, confined: bool, namespace: int | None = None
) -> Callable[[], None]:
    """Return the function that a new child runs between fork and exec.

    It enters its cgroup, adopts its own orphans, so that none gets past it while it lives, and
    gives up to gain rights by set-user-id programs. In a user namespace it becomes its root, which
    is the job's user outside. Between fork and exec only system calls are safe: nothing here
    allocates much, locks or logs.
    """
    prctl, write, setns = _libc.prctl, os.write, _libc.setns

    def enter() -> None:
        if cgroup is not None:
            write(cgroup, b"0")
        prctl(_SUBREAPER, 1, 0, 0, 0)
        if confined and prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
            raise OSError
        if namespace is None:
            return
        if setns(namespace, _NEW_USER_NAMESPACE) != 0:
            raise OSError
        os.setgroups([])
        os.setresgid(0, 0, 0)
        os.setresuid(0, 0, 0)

    return enter


def make_user_namespace() -> None:
    """Move this process, which has one thread only, into a new user namespace."""
    if _libc.unshare(_NEW_USER_NAMESPACE) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


@contextmanager
def touch_files_as(uid: int, gid: int) -> Iterator[None]:
    """Access files with the rights of another user in this thread only.

    A link that a job laid then leads the runner nowhere that the job could not go itself. No
    `await` may happen inside: another task would go on under the wrong name.
    """
    _libc.setfsgid(gid)
    _libc.setfsuid(uid)
    try:
        if _libc.setfsuid(_KEEP) != uid or _libc.setfsgid(_KEEP) != gid:
            raise PermissionError(1, f"this process may not act as user {uid}")
        yield
    finally:
        _libc.setfsuid(os.geteuid())
        _libc.setfsgid(os.getegid())


def _control(option: int) -> None:
    if _libc.prctl(option, 1, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
