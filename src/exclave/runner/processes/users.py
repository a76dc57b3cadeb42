"""The users that jobs run as: one for all jobs, or one per job from a range of uids."""

import fcntl
import os
import pwd
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from exclave.base.errors import Kind, Problem
from exclave.runner.processes import prctl, procfs

CLAIMS = Path("/var/lib/exclave/uids")
"""The folder with one lock file per uid that a runner uses."""

_RANGE = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")
_MOST = 4096


class NoSuchUser(Problem):
    """`EXCLAVE_RUN_AS` cannot be used as it is."""

    kind: ClassVar = Kind.INVALID
    code: ClassVar = "run_as_invalid"
    hint: ClassVar = (
        "Run the runner as root on Linux, and set EXCLAVE_RUN_AS to `auto`, to a range of unused"
        " uids like 60600-60615, or to a user of its own that is not root; `none` turns it off."
    )


@dataclass(frozen=True, slots=True)
class JobUser:
    """The user that the processes of a job run as."""

    uid: int
    gid: int
    alone: bool
    """Whether one job at a time runs as this user, so that all its processes are that job's."""

    def touch_files(self) -> AbstractContextManager[None]:
        """Access files with the rights of this user in this thread; no `await` inside."""
        return prctl.touch_files_as(self.uid, self.gid)


@dataclass(frozen=True, slots=True)
class RunAs:
    """The parsed setting: one user for all jobs, or a range of uids."""

    users: tuple[JobUser, ...]

    @property
    def is_range(self) -> bool:
        """Whether each job has its own user."""
        return self.users[0].alone


def read_run_as(text: str, capacity: int) -> RunAs | None:
    """Parse the setting; None if jobs run as the runner's own user."""
    if not text:
        return None
    if not prctl.is_linux() or os.geteuid() != 0:
        raise NoSuchUser(f"EXCLAVE_RUN_AS is `{text}`, and only root on Linux can become others")
    span = _RANGE.fullmatch(text)
    if span is None:
        return RunAs((_find_user(text),))
    first, last = int(span[1]), int(span[2])
    if first < 1 or last - first + 1 < capacity or last - first >= _MOST:
        raise NoSuchUser(
            f"EXCLAVE_RUN_AS: the range {text} has to begin above 0 and to have at least as many"
            f" uids as jobs run at once ({capacity}), and at most {_MOST}"
        )
    return RunAs(tuple(JobUser(uid, uid, alone=True) for uid in range(first, last + 1)))


def _find_user(text: str) -> JobUser:
    try:
        entry = pwd.getpwuid(int(text)) if text.isdecimal() else pwd.getpwnam(text)
    except (KeyError, OverflowError) as error:
        raise NoSuchUser(f"EXCLAVE_RUN_AS: there is no user `{text}` on this machine") from error
    if entry.pw_uid == 0 or entry.pw_gid == 0:
        raise NoSuchUser(f"EXCLAVE_RUN_AS: `{text}` is root, or of root's group")
    return JobUser(entry.pw_uid, entry.pw_gid, alone=False)


class Users:
    """Assigns users to jobs; a uid of a range belongs to one job of one runner at a time."""

    def __init__(self, run_as: RunAs, claims: Path = CLAIMS) -> None:
        self._shared = None if run_as.is_range else run_as.users[0]
        self._free: list[JobUser] = []
        self._locks: list[int] = []
        if run_as.is_range:
            claims.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._free = list(self._claim(run_as, claims))
        self.owned = frozenset(user.uid for user in self._free)
        """The uids that only jobs of this runner use."""

    def acquire(self) -> JobUser | None:
        """Acquire a user that no process runs as; None if there is none."""
        if self._shared is not None:
            return self._shared
        busy = procfs.list_users()
        free = next((user for user in self._free if user.uid not in busy), None)
        if free is not None:
            self._free.remove(free)
        return free

    def release(self, user: JobUser) -> None:
        """Release a user for other jobs; users are reused in the order of their release."""
        if user.alone:
            self._free.append(user)

    def close(self) -> None:
        """Release the range for other runners."""
        for handle in self._locks:
            os.close(handle)
        self._locks = []

    def _claim(self, run_as: RunAs, claims: Path) -> Iterator[JobUser]:
        for user in run_as.users:
            handle = os.open(claims / str(user.uid), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self._locks.append(handle)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                self.close()
                message = f"EXCLAVE_RUN_AS: another runner on this machine uses uid {user.uid}"
                raise NoSuchUser(message) from error
            yield user


def touch_files(user: JobUser | None) -> AbstractContextManager[None]:
    """Access files as the job's user in this thread; as the runner if there is none."""
    return nullcontext() if user is None else user.touch_files()


def find_owner(folder: Path) -> JobUser | None:
    """Return the job user that owns a folder; None if the runner owns it."""
    facts = folder.lstat()
    same = facts.st_uid == os.geteuid()
    return None if same else JobUser(facts.st_uid, facts.st_gid, alone=False)
