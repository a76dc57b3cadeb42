"""Programs from PyPI that tests run, each in a virtual environment of its own, kept by version.

They are no part of the development environment: each pins versions of many libraries, which would
then be pinned for everything else.
"""

import hashlib
import subprocess
import sys
from pathlib import Path

from tests.support.tools import BUILD_S, FOLDER, give_up, locked

PROGRAMS = {"awscli": "aws", "checkov": "checkov", "shellcheck": "shellcheck"}
"""What each package calls its program."""
LOCKS = Path(__file__).parents[2] / "requirements"
"""Where `<name>.lock` names all that a program consists of, by hash."""


def need_python_tool(name: str) -> Path:
    """Return the path of a program, which is installed from its lock file at first."""
    lock = LOCKS / f"{name}.lock"
    digest = hashlib.sha256(lock.read_bytes() + sys.version.encode()).hexdigest()[:16]
    folder = FOLDER / f"{name}-{digest}"
    ready = folder / "ready"
    if not ready.exists():
        with locked(folder):
            if not ready.exists() and (problem := _install(folder / "venv", lock)):
                give_up(f"{name} is not there and could not be installed: {problem}")
            ready.touch()
    return folder / "venv" / "bin" / PROGRAMS[name]


def _install(venv: Path, lock: Path) -> str:
    """Install what a lock file names; return what went wrong, or nothing."""
    pip = ("-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps")
    for argv in (
        (sys.executable, "-m", "venv", "--clear", str(venv)),
        (str(venv / "bin" / "python"), *pip, "--require-hashes", "-r", str(lock)),
    ):
        done = subprocess.run(argv, capture_output=True, text=True, timeout=BUILD_S, check=False)
        if done.returncode:
            return done.stderr.strip()[-500:]
    return ""
