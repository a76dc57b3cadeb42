"""Starts the runner program of this machine; needs nothing but Python.

It belongs to no version of the program. Where the runner left a link `next`, that program is tried:
unless it reaches the control plane in time and removes the file `trial`, the one before it is
started again.
"""

import json
import os
import select
import signal
import sys
import time
from pathlib import Path

WITHIN_S = 120.0
MOST_STARTS = 3

CURRENT = "current"
NEXT = "next"
TRIAL = "trial"
FAILED = "failed"
VERSIONS = "versions"


def main(root: Path, words: list[str]) -> None:
    """Replace this process by the current program, or by the one that is to be tried."""
    begin_trial(root)
    if count_start(root):
        watch_trial(root)
    launch = (root / CURRENT).resolve() / "launch.py"
    os.execv(sys.executable, [sys.executable, "-I", str(launch), *words])  # noqa: S606 - words, no shell


def begin_trial(root: Path) -> None:
    """Turn the link `next` into a trial."""
    following = root / NEXT
    if following.is_symlink():
        before = (root / CURRENT).readlink().name
        write(root / TRIAL, {"before": before, "after": following.readlink().name, "starts": 0})
        following.unlink()


def count_start(root: Path) -> bool:
    """Return whether a program is tried now; go back if it had its chances."""
    file = root / TRIAL
    if not file.exists():
        return False
    trial = json.loads(file.read_text())
    if trial["starts"] >= MOST_STARTS:
        reason = "it did not reach the control plane"
        write(root / FAILED, {"program": trial["after"], "reason": reason})
        point(root, trial["before"])
        file.unlink()
        return False
    write(file, {**trial, "starts": trial["starts"] + 1})
    point(root, trial["after"])
    return True


def watch_trial(root: Path) -> None:
    """Start a process that ends this one if the trial is not over in time."""
    tried = os.pidfd_open(os.getpid())
    child = os.fork()
    if child:
        os.close(tried)
        os.waitpid(child, 0)
        return
    os.setsid()
    if os.fork() == 0:
        wait_for_end(root, tried)
    os._exit(0)


def wait_for_end(root: Path, tried: int) -> None:
    """Wait until the trial is over; end the program if that takes too long."""
    until = time.monotonic() + WITHIN_S
    while time.monotonic() < until:
        has_ended, _, _ = select.select([tried], [], [], 0.5)
        if has_ended or not (root / TRIAL).exists():
            return
    trial = json.loads((root / TRIAL).read_text())
    write(root / TRIAL, {**trial, "starts": MOST_STARTS})
    signal.pidfd_send_signal(tried, signal.SIGKILL)


def point(root: Path, name: str) -> None:
    """Make a program the current one."""
    link = root / f"{CURRENT}.new"
    link.unlink(missing_ok=True)
    link.symlink_to(Path(VERSIONS) / name)
    link.replace(root / CURRENT)


def write(file: Path, facts: dict[str, object]) -> None:
    """Store facts so that a crash leaves the old ones or the new ones."""
    part = file.with_name(f"{file.name}.new")
    with part.open("w") as out:
        json.dump(facts, out)
        out.flush()
        os.fsync(out.fileno())
    part.replace(file)


if __name__ == "__main__":
    main(Path(__file__).resolve().parent, sys.argv[1:])
