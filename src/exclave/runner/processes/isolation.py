"""Isolation by user: whether jobs run as other users, and which uids they get."""

import grp
import os
import pwd
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from exclave.runner.control_plane.identity import IDENTITY
from exclave.runner.data_folder import write_durably
from exclave.runner.processes import prctl, procfs
from exclave.runner.processes.users import CLAIMS, JobUser, NoSuchUser, RunAs, Users, read_run_as

AUTO, NONE = "auto", "none"
"""Values of `EXCLAVE_RUN_AS`: choose a range of uids; let jobs run as the runner's own user."""

POOL = range(60_578, 61_184)
"""Uids that no distribution uses for people, services, dynamic users or containers."""

STATE = Path("/var/lib/exclave")
"""The folder of isolated jobs, because their users cannot enter data folders."""

_CHOSEN = "uids"
"""The file in the data folder that remembers the range."""
_TRACES = (IDENTITY, "audit.jsonl")
"""Files that a runner which has run before has in its data folder."""
_LEAST = 8
_CAPABILITIES = {
    0: "CAP_CHOWN", 1: "CAP_DAC_OVERRIDE", 3: "CAP_FOWNER", 5: "CAP_KILL", 6: "CAP_SETGID",
    7: "CAP_SETUID",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Isolation:
    """The effective isolation on this machine."""

    run_as: str
    """`auto`, a range or a user; empty if jobs run as the runner's own user."""
    why_not: str = ""
    """Why jobs are not isolated."""


def decide_isolation(setting: str, data: Path, *, builds_tools: bool = False) -> Isolation:
    """Return the effective isolation; without a setting, jobs are isolated if that is possible.

    A runner that has run without isolation continues so: the files of its jobs belong to its own
    user, and jobs of other users could not change them.
    """
    if setting == NONE:
        return Isolation("", "EXCLAVE_RUN_AS is `none`")
    if setting:
        return Isolation(setting)
    if obstacle := find_obstacle():
        return Isolation("", obstacle)
    if builds_tools:
        return Isolation("", "EXCLAVE_TOOLS_BUILD lets jobs build tools for other jobs")
    if not read_chosen(data) and any((data / name).exists() for name in _TRACES):
        return Isolation("", "it began without isolation; EXCLAVE_RUN_AS=auto switches it on")
    return Isolation(AUTO)


def find_obstacle() -> str:
    """Return why jobs cannot run as other users on this machine; empty if they can."""
    if not prctl.is_linux():
        return "this is not Linux"
    if os.geteuid() != 0:
        return "the runner is not root"
    held = _read_capabilities()
    missing = [name for bit, name in _CAPABILITIES.items() if not held >> bit & 1]
    if missing:
        return f"root lacks {', '.join(missing)} here"
    if not _is_mapped(POOL):
        return f"the uids {POOL[0]}-{POOL[-1]} do not exist in this container"
    ancestor = next(folder for folder in (STATE, *STATE.parents) if folder.exists())
    return "" if os.access(ancestor, os.W_OK) else f"`{ancestor}` cannot be written"


def claim_users(run_as: str, capacity: int, data: Path, claims: Path = CLAIMS) -> Users | None:
    """Claim the uids that the setting names, or choose some; None where jobs are not isolated."""
    if run_as != AUTO:
        named = read_run_as(run_as, capacity)
        return None if named is None else Users(named, claims)
    if obstacle := find_obstacle():
        raise NoSuchUser(f"EXCLAVE_RUN_AS is `auto`, and jobs cannot be isolated: {obstacle}")
    for span in _list_spans(max(capacity, _LEAST), data, claims):
        try:
            users = Users(RunAs(tuple(JobUser(uid, uid, alone=True) for uid in span)), claims)
        except NoSuchUser:
            continue
        for uid in span:
            (claims / str(uid)).write_text(str(data))
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_durably(data / _CHOSEN, f"{span[0]}-{span[-1]}\n".encode())
        return users
    raise NoSuchUser(f"EXCLAVE_RUN_AS: no uids between {POOL[0]} and {POOL[-1]} are left")


def read_chosen(data: Path) -> str:
    """Return the range that this runner has chosen; empty if it has not started yet."""
    try:
        return (data / _CHOSEN).read_text().strip()
    except OSError:
        return ""


def _list_spans(size: int, data: Path, claims: Path) -> Iterator[range]:
    """Yield ranges to try: the last one, then free ones, then those of runners that do not run."""
    busy = procfs.list_users()
    chosen = _parse(read_chosen(data))
    if chosen is not None and len(chosen) >= size and not _is_named(chosen):
        yield chosen
    others: list[range] = []
    for first in range(POOL.start, POOL.stop - size + 1, size):
        span = range(first, first + size)
        if _is_named(span) or any(uid in busy for uid in span):
            continue
        if any(_is_reserved(claims / str(uid), data) for uid in span):
            others.append(span)
        else:
            yield span
    yield from others


def _parse(text: str) -> range | None:
    first, _, last = text.partition("-")
    if not (first.isdecimal() and last.isdecimal()):
        return None
    span = range(int(first), int(last) + 1)
    return span if span and span[0] in POOL and span[-1] in POOL else None


def _is_named(span: range) -> bool:
    """Return whether a user or group of this machine has one of these numbers."""
    for uid in span:
        for find in (pwd.getpwuid, grp.getgrgid):
            try:
                find(uid)
            except KeyError:
                continue
            return True
    return False


def _is_reserved(claim: Path, data: Path) -> bool:
    """Return whether another runner, which is not running now, has chosen this uid."""
    try:
        owner = claim.read_text()
    except OSError:
        return False
    return owner not in {"", str(data)} and (Path(owner) / _CHOSEN).exists()


def _read_capabilities() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next((int(line.split()[1], 16) for line in lines if line.startswith("CapEff:")), 0)


def _is_mapped(span: range) -> bool:
    for line in Path("/proc/self/uid_map").read_text().splitlines():
        inside, _, count = map(int, line.split())
        if inside <= span[0] and span[-1] < inside + count:
            return True
    return False
