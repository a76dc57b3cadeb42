"""Starts, shows, stops and removes a Stack, from outside of its processes."""

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

from exclave.base.clock import Clock
from exclave.base.errors import Kind, Problem
from exclave.base.ids import Randomness
from exclave.client.runner import RunnerApi
from exclave.client.stacks import StackApi
from exclave.runner.control_plane.access_token import Session
from exclave.runner.control_plane.identity import IDENTITY, load_identity, load_key
from exclave.runner.data_folder import DataFolder, remove_tree
from exclave.runner.executions.kill_switch import is_disabled
from exclave.runner.processes import procfs
from exclave.runner.processes.leftovers import kill_leftovers
from exclave.runner.stack.folder import Refusal, ReportReply, StackFolder
from exclave.runner.stack.supervisor import find_supervisor
from exclave.wire.stacks import INPUT_SECRET, StackTerms

START_WITHIN_S = 60.0
STOP_WITHIN_S = 260.0
_PAUSE_S = 0.1
_PARENTS = ("stacks", ".exclave")
"""Parent folders of the default location, removed with the last Stack."""


class StackFailed(Problem):
    """A command of the Stack failed."""

    kind: ClassVar = Kind.UNAVAILABLE
    code: ClassVar = "stack_failed"
    hint: ClassVar = "Look at the files in `logs/` of the Stack's folder."


@dataclass(frozen=True, slots=True)
class StackStatus:
    """A Stack as its own machine sees it."""

    install: str
    install_id: str
    state: str
    """running, stopped or refused."""
    disabled: bool
    enrolled: bool
    pid: int | None
    runner_url: str
    version: str
    folder: str
    report: ReportReply | None
    missing_secrets: list[str]
    missing_inputs: list[str]
    problem: str = ""

    def to_json(self) -> dict[str, object]:
        """Return the status as `stack status --json` prints it."""
        report = {} if self.report is None else self.report.to_json()
        return {**asdict(self), "report": report}


def read_status(folder: StackFolder, secrets: frozenset[str]) -> StackStatus:
    """Return the status of the Stack; `secrets` are the names of the stored ones."""
    document = folder.read_document()
    pid = find_supervisor(folder)
    refusal = folder.read_refusal()
    state = "running" if pid is not None else "refused" if refusal else "stopped"
    return StackStatus(
        install=document.terms.install,
        install_id=document.terms.install_id,
        state=state,
        disabled=is_disabled(folder.runner),
        enrolled=(folder.runner / IDENTITY).exists(),
        pid=pid,
        runner_url=document.runner_url,
        version=document.version,
        folder=str(folder.path),
        report=folder.read_report_reply(),
        missing_secrets=[
            secret.name
            for secret in document.terms.secrets
            if secret.required and secret.name not in secrets
        ],
        missing_inputs=_list_missing_inputs(folder, document.terms, secrets),
        problem="" if refusal is None else refusal.message,
    )


def _list_missing_inputs(
    folder: StackFolder, terms: StackTerms, secrets: frozenset[str]
) -> list[str]:
    """Name the required inputs that the customer has not given; a default does not count."""
    given = folder.read_inputs()
    return [
        declared.name
        for declared in terms.inputs
        if declared.required
        and not given.get(declared.name)
        and f"{INPUT_SECRET}{declared.name}" not in secrets
    ]


async def start(folder: StackFolder, argv: Sequence[str], clock: Clock) -> bool:
    """Start the supervisor in the background; return False if one runs already.

    Returns once the runner is enrolled; raises if it could not enrol.
    """
    if find_supervisor(folder) is not None:
        return False
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    out = os.open(folder.log.with_name("supervisor.log"), flags, 0o600)
    try:
        child = subprocess.Popen(  # noqa: ASYNC220, S603 - our own program; it starts at once
            argv,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            cwd=folder.path,
        )
    finally:
        os.close(out)
    until = clock.monotonic() + START_WITHIN_S
    while clock.monotonic() < until:
        if (folder.runner / IDENTITY).exists() and find_supervisor(folder) is not None:
            return True
        if child.poll() is not None:
            refusal = folder.read_refusal() or Refusal(
                message=f"the supervisor ended with code {child.returncode}", hint=StackFailed.hint
            )
            raise StackFailed(refusal.message, hint=refusal.hint)
        await clock.sleep(_PAUSE_S)
    raise StackFailed(
        f"the runner is not enrolled after {START_WITHIN_S:g} s; it keeps trying",
        hint="`stack status` and the files in `logs/` of the Stack's folder tell more.",
    )


async def stop(folder: StackFolder, clock: Clock) -> bool:
    """Stop supervisor and runner gracefully; return False if nothing ran."""
    pid = find_supervisor(folder)
    if pid is None:
        return False
    born = procfs.read_start(pid)
    if pid:
        os.kill(pid, signal.SIGTERM)
    until = clock.monotonic() + STOP_WITHIN_S
    while find_supervisor(folder) is not None or _is_alive(pid, born):
        if clock.monotonic() >= until:
            raise StackFailed(f"the supervisor (process {pid}) does not end")
        await clock.sleep(_PAUSE_S)
    return True


def _is_alive(pid: int, born: int | None) -> bool:
    return born is not None and procfs.read_start(pid) == born


async def resign(
    folder: StackFolder,
    api: RunnerApi,
    stack_api: StackApi,
    *,
    clock: Clock,
    randomness: Randomness,
) -> bool:
    """Close the runner's identity at the control plane; return False if it never enrolled."""
    if not (folder.runner / IDENTITY).exists():
        return False
    disk = DataFolder(folder.runner)
    try:
        identity, key = load_identity(folder.runner), load_key(folder.runner)
        session = Session(api, disk, identity, key, clock=clock, randomness=randomness)
        await session.call(stack_api.resign)
    finally:
        disk.close()
    return True


async def remove(folder: StackFolder, clock: Clock, jobs: Path | None = None) -> None:
    """Kill remaining processes of jobs, and remove the folder and its content."""
    if folder.path in {Path("/"), Path.home().resolve()}:
        raise StackFailed(
            f"`{folder.path}` holds more than a Stack and is not removed",
            hint="Remove the Stack's own files by hand: stack*, runner, logs, venv, *.json.",
        )
    parents = [base / "executions" for base in (folder.runner, jobs) if base is not None]
    for execution in [
        execution for parent in parents if parent.is_dir() for execution in sorted(parent.iterdir())
    ]:
        if not await kill_leftovers(execution, clock):
            raise StackFailed(
                f"it is not certain that nothing of `{execution.name}` still runs",
                hint="Look for its processes, end them, then try again.",
            )
    if jobs is not None:
        with suppress(FileNotFoundError):
            await remove_tree(jobs, lambda: clock.sleep(0))
    await remove_tree(folder.path, lambda: clock.sleep(0))
    _remove_empty(folder.path.parent)


def _remove_empty(parent: Path) -> None:
    for name in _PARENTS:
        if parent.name != name or any(parent.iterdir()):
            return
        parent.rmdir()
        parent = parent.parent
