"""The command line as people use it: a process with a folder, an environment and no terminal."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.faults.site import exclave


def run_exclave(
    *words: str, folder: Path, env: Mapping[str, str], timeout_s: float = 90
) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end, whatever its exit code is."""
    return subprocess.run(
        [*exclave(), *words],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=timeout_s,
        check=False,
    )
