"""The main program of a worker process, which runs one call after another within limits.

It imports nothing of the server until a call asks for it, holds no connection and no secret, and
ends with its parent: when its standard input closes, by the kernel's signal, or by its own alarm.
"""

import ctypes
import importlib
import os
import pickle
import resource
import signal
import struct
import sys
import traceback
from collections.abc import Callable
from enum import IntEnum
from pathlib import Path
from typing import Any, BinaryIO

CALL = struct.Struct("!Q")
"""A call is its length, then so many bytes of pickle."""
REPLY = struct.Struct("!BBQ")
"""A reply is how it ended, whether the process leaves now, its length, and the pickle."""
MOST_REPLY = 64 * 1024 * 1024
_MIB = 1024 * 1024
PATIENCE = 4
"""Wall-clock limit of a call as a multiple of its CPU time limit."""
_GRACE_S = 2.0
_FILES = 256
_PR_SET_PDEATHSIG = 1


class Ending(IntEnum):
    """How a call ended."""

    RETURNED = 0
    RAISED = 1
    BROKEN = 2
    """It raised an exception that cannot be pickled; the reply is the traceback."""
    TOO_MUCH_MEMORY = 3
    TOO_LARGE = 4


def main() -> None:
    """Serve calls from standard input until it closes; argv: the parent's id, memory in MiB."""
    parent, memory = int(sys.argv[1]), int(sys.argv[2]) * _MIB
    _die_with(parent)
    _set_limits(memory)
    calls = sys.stdin.buffer
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not write between our replies
    sys.path[:], modules = _receive(calls)
    for module in modules:
        importlib.import_module(module)
    replies.write(REPLY.pack(Ending.RETURNED, False, 0))
    replies.flush()
    while True:
        try:
            module, name, args, seconds = _receive(calls)
        except EOFError:
            return
        # The first limit is of CPU time, so that a busy machine makes nobody fail. The second one
        # is the parent's own, for the case that it cannot end us any more.
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.setitimer(signal.ITIMER_REAL, seconds * PATIENCE + _GRACE_S)
        ending, reply = _run(module, name, args)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        leaves = ending is Ending.TOO_MUCH_MEMORY or _has_grown(memory)
        replies.write(REPLY.pack(ending, leaves, len(reply)))
        replies.write(reply)
        replies.flush()
        if leaves:
            return


def _run(module: str, name: str, args: tuple[Any, ...]) -> tuple[Ending, bytes]:
    try:
        try:
            function: Callable[..., object] = getattr(importlib.import_module(module), name)
            reply = pickle.dumps(function(*args), pickle.HIGHEST_PROTOCOL)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - the caller gets it
            return _pack_error(error)
    except MemoryError:
        return Ending.TOO_MUCH_MEMORY, b""
    return (Ending.TOO_LARGE, b"") if len(reply) > MOST_REPLY else (Ending.RETURNED, reply)


def _pack_error(error: Exception) -> tuple[Ending, bytes]:
    try:
        packed = pickle.dumps(error)
        pickle.loads(packed)  # noqa: S301 - our own bytes: some exceptions pickle, but never unpickle
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - as text it can always be sent
        return Ending.BROKEN, "".join(traceback.format_exception(error)).encode()
    return Ending.RAISED, packed


def _has_grown(memory: int) -> bool:
    """Return whether the process uses so much memory that it should be replaced."""
    # Not `ru_maxrss`: on Linux a process starts with the one of the server that forked it.
    try:
        facts = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    peak = next((line for line in facts.splitlines() if line.startswith("VmHWM:")), "VmHWM: 0")
    return int(peak.split()[1]) * 1024 > memory // 2


def _receive(calls: BinaryIO) -> Any:
    head = calls.read(CALL.size)
    if len(head) < CALL.size:
        raise EOFError
    return pickle.loads(calls.read(CALL.unpack(head)[0]))  # noqa: S301 - from our parent alone


def _die_with(parent: int) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # a group was asked to end: our parent decides when
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(0)


def _set_limits(memory: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    most = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


if __name__ == "__main__":
    main()
