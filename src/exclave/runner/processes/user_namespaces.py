"""User namespaces: a command is root inside of one, and outside only the user of its job.

Builds of images need many users. In a namespace these are numbers that nobody else has, so that a
build has no more rights on the machine than any other job.
"""

import os
import subprocess

from exclave.runner.outcomes import WorkFailed
from exclave.runner.processes import prctl
from exclave.runner.processes.users import JobUser
from exclave.wire.jobs import Reason

_FIRST, _LAST = 1_879_048_192, 2_147_352_575
"""Ids that systemd's list of ranges leaves unused on every machine."""
_SIZE = 1 << 16
_HOLDER = "/bin/cat"
_ADVICE = (
    "allow them on the build runner's machine, or give it a machine of its own and set"
    " EXCLAVE_RUN_AS=none"
)


def open_namespace(user: JobUser) -> int:
    """Make a namespace whose root is the job's user; return a handle of it, to be closed.

    Users 1 to 65535 inside are ids that belong to this user alone. Only root can make it.
    """
    holder = _start_holder()
    try:
        for name, outside in (("uid_map", user.uid), ("gid_map", user.gid)):
            first = _find_subordinates(outside)
            lines = f"0 {outside} 1\n1 {first} {_SIZE - 1}\n"
            with open(f"/proc/{holder.pid}/{name}", "wb", buffering=0) as out:  # noqa: PTH123
                out.write(lines.encode())
        return os.open(f"/proc/{holder.pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise _refuse(error.strerror or str(error)) from error
    finally:
        holder.kill()
        holder.communicate()


def _start_holder() -> "subprocess.Popen[bytes]":
    """Start a process that keeps a new namespace alive until there is a handle of it."""
    try:
        return subprocess.Popen(  # noqa: S603 - a program of the system, without arguments
            [_HOLDER],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            preexec_fn=prctl.make_user_namespace,  # noqa: PLW1509 - a system call only
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise _refuse(str(error)) from error


def _find_subordinates(outside: int) -> int:
    """Return the first of the ids that belong to a user or a group."""
    slots = (_LAST - _FIRST + 1) // _SIZE
    return _FIRST + outside % slots * _SIZE


def _refuse(why: str) -> WorkFailed:
    message = f"builds of images need user namespaces, and none can be made: {why}; {_ADVICE}"
    return WorkFailed(Reason.SPAWN_FAILED, message)
