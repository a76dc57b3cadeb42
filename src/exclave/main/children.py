"""Child processes of `exclave dev`, with their output in a file."""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from exclave.main.settings import PREFIX, SHARED
from exclave.runner.processes.isolation import NONE

_RUN_AS = f"{PREFIX}RUN_AS"
_PASSED_ON = frozenset(PREFIX + name.upper() for name in SHARED)


def clean_environment() -> dict[str, str]:
    """Return this process's environment, without settings of ours that runners do not share.

    Jobs run as the developer unless configured otherwise: apps are tried out on this machine, and
    what they create on it outlives the job that created it.
    """
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(PREFIX) or key in _PASSED_ON
    }
    return {**kept, _RUN_AS: os.environ.get(_RUN_AS) or NONE}


async def run_child(argv: Sequence[str], output: Path, env: Mapping[str, str]) -> int:
    """Run a command to its end and return its exit code; terminate it on cancellation."""
    with output.open("ab") as out:
        child = await asyncio.create_subprocess_exec(
            *argv,
            env=dict(env),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
        try:
            return await child.wait()
        finally:
            if child.returncode is None:
                child.send_signal(signal.SIGTERM)
                await child.wait()
