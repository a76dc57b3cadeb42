"""The processes of a Stack: the runner as its folder describes it, and its supervisor."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from exclave.base.clock import SystemClock
from exclave.base.errors import Problem, Unauthenticated
from exclave.base.ids import SystemRandomness
from exclave.client.problems import RemoteProblem
from exclave.client.runner import HttpRunnerApi
from exclave.client.stacks import HttpStackApi
from exclave.main.environment import read_settings
from exclave.main.runner import build_config, run_runner
from exclave.main.settings import PREFIX, SHARED, RunnerSettings
from exclave.runner.control_plane.access_token import IdentityRefused
from exclave.runner.control_plane.identity import IDENTITY, NotEnrolled, StrangeKeys
from exclave.runner.processes.isolation import AUTO
from exclave.runner.secrets.store import FileSecrets
from exclave.runner.stack import lifecycle
from exclave.runner.stack.folder import StackFolder
from exclave.runner.stack.supervisor import FINAL_EXIT, Supervisor

_REFUSED = (IdentityRefused, NotEnrolled, StrangeKeys, Unauthenticated)
_UNAUTHENTICATED = 401


def build_program_argv(*words: str) -> list[str]:
    """Return the argv of a command of this program; `-I` ignores the folder and environment."""
    return [sys.executable, "-I", "-m", "exclave", "stack", *words]


def set_up(folder: StackFolder, env: Mapping[str, str]) -> bool:
    """Store the content of the script and the settings of this shell.

    Return whether that changed the version of an existing Stack.
    """
    if not folder.fresh.exists():
        folder.read_document()  # raises if this is not a Stack's folder
    folder.prepare()
    before = folder.read_document().version if folder.document.exists() else ""
    after = folder.adopt().version
    folder.write_launcher(build_program_argv())
    if not folder.secrets.exists():
        folder.write_json(folder.secrets, {})
    kept = folder.read_settings()
    names = (*SHARED, "run_as", "jobs_folder")
    given = {name: env[PREFIX + name.upper()] for name in names if env.get(PREFIX + name.upper())}
    fresh = {"path": env.get("PATH", os.defpath), **given}
    if fresh != kept:
        folder.write_json(folder.settings, {**kept, **fresh})
    return before not in {"", after}


def read_stack_settings(folder: StackFolder) -> RunnerSettings:
    """Return the settings of the Stack's runner."""
    document = folder.read_document()
    given: dict[str, object] = {
        **folder.read_settings(),
        "runner_data": folder.runner,
        "runner_url": document.runner_url,
        "runner_name": _name_runner(document.terms.install),
        "enrolment": document.enrolment,
        "secrets_file": folder.secrets,
    }
    return read_settings(RunnerSettings, {}, **given)


def describe_isolation(folder: StackFolder) -> str:
    """Return a notice whether jobs are isolated from the Stack's files, and how to change it.

    Empty after the first start of a Stack whose jobs are isolated.
    """
    config = build_config(read_stack_settings(folder))
    if not config.run_as:
        return (
            "Warning: jobs of this Stack run as its own user and can read its key and secrets"
            f" ({config.why_not_isolated}). See `EXCLAVE_RUN_AS` in the docs."
        )
    if config.run_as != AUTO or (folder.runner / IDENTITY).exists():
        return ""
    return (
        "Each job of this Stack runs as an unused uid of its own, without rights on this machine."
        " If the app has to change this machine itself, run it with EXCLAVE_RUN_AS=none."
    )


def find_jobs_folder(folder: StackFolder) -> Path | None:
    """Return the folder of the Stack's jobs, if it is not the Stack's own."""
    return build_config(read_stack_settings(folder)).jobs_folder


async def run_stack_runner(folder: StackFolder) -> int:
    """Run the Stack's runner until it is stopped; return the exit code of this process."""
    try:
        await run_runner(read_stack_settings(folder), folder)
    except Problem as problem:
        if not _is_final(problem):
            raise
        ending = {"code": problem.code, "message": problem.message, "hint": problem.advice}
        folder.write_json(folder.ended, ending)
        return FINAL_EXIT
    return 0


async def supervise(folder: StackFolder) -> bool:
    """Supervise the Stack's runner until SIGTERM or SIGINT; return False if it ended before."""
    argv = build_program_argv("run", "--folder", str(folder.path))
    supervisor = Supervisor(folder, argv, clock=SystemClock(), randomness=SystemRandomness())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, supervisor.request_stop)
    return await supervisor.run()


async def start_stack(folder: StackFolder) -> bool:
    """Start the supervisor apart from this terminal; False if it runs already."""
    argv = build_program_argv("up", "--foreground", "--folder", str(folder.path))
    return await lifecycle.start(folder, argv, SystemClock())


async def resign_stack(folder: StackFolder) -> bool:
    """Report to the control plane that the Stack's runner is gone; False if it never enrolled."""
    link = build_config(read_stack_settings(folder)).link
    api, stack_api = HttpRunnerApi(link), HttpStackApi(link)
    try:
        return await lifecycle.resign(
            folder, api, stack_api, clock=SystemClock(), randomness=SystemRandomness()
        )
    finally:
        await api.close()
        await stack_api.close()


def open_secrets(folder: StackFolder) -> FileSecrets:
    """Open the Stack's secrets."""
    return FileSecrets(folder.secrets, folder.format_secret_command)


def _is_final(problem: Problem) -> bool:
    refused = isinstance(problem, RemoteProblem) and problem.status == _UNAUTHENTICATED
    return refused or isinstance(problem, _REFUSED)


def _name_runner(install: str) -> str:
    return f"stack-{install}"[:63]
