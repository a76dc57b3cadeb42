"""Checks of the machine itself: data folder, disk, identity, isolation."""

import os
import stat
import subprocess
from pathlib import Path

from exclave.base.errors import Problem
from exclave.runner.config import RunnerConfig
from exclave.runner.control_plane.identity import KEY, load_identity, load_key
from exclave.runner.doctor.findings import Finding, fail, from_problem, ok, warn
from exclave.runner.processes.isolation import AUTO, read_chosen
from exclave.runner.processes.users import JobUser, read_run_as

_MIB = 1 << 20
_ISOLATE = "Run the runner as root with EXCLAVE_RUN_AS=auto, or give it a machine of its own."


def check_folder(config: RunnerConfig) -> Finding:
    """Check that the data folder exists, belongs to this user and is closed to others."""
    folder = config.data
    if not folder.is_dir():
        return fail("data folder", f"`{folder}` does not exist", "Enrol the runner; it makes it.")
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return fail(
            "data folder", f"`{folder}` cannot be written", "Give it to the user of the runner."
        )
    if stat.S_IMODE(folder.stat().st_mode) & 0o077:
        return warn("data folder", f"others may read `{folder}`", f"Run: chmod 700 {folder}")
    return ok("data folder", f"`{folder}` can be used")


def check_disk(config: RunnerConfig) -> Finding:
    """Check the free disk space."""
    ancestor = next(
        (folder for folder in (config.data, *config.data.parents) if folder.is_dir()), config.data
    )
    disk = os.statvfs(ancestor)
    free, need = disk.f_bavail * disk.f_frsize, config.keep_free_bytes
    message = f"{free // _MIB} MiB free, {need // _MIB} MiB kept free"
    if free < need:
        return fail("disk", f"{message}: no work is taken", "Free space, or use a larger disk.")
    if free < 4 * need:
        return warn("disk", message, "Free some space: jobs need room to work in.")
    return ok("disk", message)


def check_identity(config: RunnerConfig) -> Finding:
    """Check that the runner is enrolled and its key private."""
    try:
        identity = load_identity(config.data)
        load_key(config.data)
    except Problem as problem:
        return from_problem("identity", problem)
    file = config.data / KEY
    if stat.S_IMODE(file.stat().st_mode) & 0o077:
        return fail("identity", f"others may read `{file}`", f"Run: chmod 600 {file}")
    return ok("identity", f"enrolled as {identity.runner_id} for queue {identity.queue_id}")


def check_isolation(config: RunnerConfig) -> Finding:
    """Check that jobs cannot read the runner's files, by trying it as the job's user."""
    name = "isolation"
    if not config.run_as:
        who = "root" if os.geteuid() == 0 else f"the runner's own user (uid {os.geteuid()})"
        why = f" ({config.why_not_isolated})" if config.why_not_isolated else ""
        message = f"jobs run as {who}{why}: they can read its key, secrets and other jobs' files"
        return warn(name, message, _ISOLATE)
    chosen = read_chosen(config.data) if config.run_as == AUTO else config.run_as
    if not chosen:
        return ok(name, "jobs will run as uids that the first start chooses")
    try:
        run_as = read_run_as(chosen, config.capacity)
    except Problem as problem:
        return from_problem(name, problem)
    if run_as is None or _can_read(run_as.users[0], config.data / KEY):
        return fail(name, f"jobs can read `{config.data / KEY}`", f"Run: chmod 700 {config.data}")
    if not run_as.is_range and config.capacity > 1:
        message = f"jobs run as `{config.run_as}`, apart from the runner, but not from each other"
        return warn(name, message, "Set EXCLAVE_RUN_AS to a range of unused uids, or capacity 1.")
    return ok(name, f"jobs run as {chosen}, and cannot read the runner's key")


def _can_read(user: JobUser, file: Path) -> bool:
    tried = subprocess.run(  # noqa: S603 - one fixed command
        ["/bin/sh", "-c", 'test -r "$0"', str(file)],
        check=False,
        cwd="/",
        env={},
        user=user.uid,
        group=user.gid,
        extra_groups=(),
    )
    return tried.returncode == 0
