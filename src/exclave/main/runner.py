"""The runner as a process."""

import asyncio
import hashlib
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from exclave.base.clock import SystemClock
from exclave.base.ids import SystemRandomness
from exclave.client.runner import HttpRunnerApi
from exclave.client.stacks import HttpStackApi
from exclave.main.build_runner import make_build_executor
from exclave.main.install_runner import make_install_executors
from exclave.main.settings import RunnerSettings
from exclave.runner.cells import make_cells
from exclave.runner.config import RunnerConfig
from exclave.runner.disabling import watch_switch
from exclave.runner.environment import ChildSettings
from exclave.runner.executors.noop import NoopExecutor
from exclave.runner.executors.script import ScriptExecutor
from exclave.runner.executors.secrets import SecretsExecutor
from exclave.runner.leftovers import kill_leftovers
from exclave.runner.logs.shipped import bind_open_log
from exclave.runner.loop import Duty, Runner, stop_on_signals
from exclave.runner.secret_store import FileSecrets, SecretStore
from exclave.runner.stack.folder import StackFolder
from exclave.runner.stack.reporting import Reporter
from exclave.runner.users import read_run_as
from exclave.runner.work import Executor
from exclave.wire.jobs import JobKind

_JOBS = Path("/var/lib/exclave/jobs")


def tell_config(settings: RunnerSettings) -> RunnerConfig:
    """Translate the settings for the runner room; children have another folder, so be absolute."""
    return RunnerConfig(
        data=settings.runner_data.resolve(),
        runner_url=settings.runner_url,
        name=settings.runner_name,
        capacity=settings.capacity,
        proxy=settings.proxy or None,
        ca_bundle=_resolve(settings.ca_bundle),
        secrets_file=_resolve(settings.secrets_file),
        run_as=settings.run_as,
        jobs_folder=_choose_jobs_folder(settings),
    )


async def run_runner(settings: RunnerSettings, stack: StackFolder | None = None) -> None:
    """Run until SIGTERM or SIGINT, or until the control plane takes the identity away."""
    config = tell_config(settings)
    cells = make_cells(read_run_as(config.run_as, config.capacity))
    clock = SystemClock()
    randomness = SystemRandomness()
    api, stack_api = HttpRunnerApi(config.link), HttpStackApi(config.link)
    advise = _advise_by_file(config) if stack is None else stack.tell_secret_command
    secrets = FileSecrets(config.secrets_file, advise)
    duties: list[Duty] = [watch_switch]
    if stack is not None:
        duties.append(Reporter(stack, stack_api, secrets).run)
    runner = Runner(
        config, api=api, clock=clock, randomness=randomness,
        executors=build_executors(settings, config, secrets, advise),
        open_log=bind_open_log(clock, randomness), cells=cells,
        kill_leftovers=partial(kill_leftovers, owned=cells.owned),
        enrolment_token=settings.enrolment or None,
        pinned=None if stack is None else list_pinned(stack), duties=duties,
    )  # fmt: skip
    stop_on_signals(runner)
    if stack is not None:
        stop_at_end_of_input(runner)
    try:
        await runner.run()
    finally:
        await api.close()
        await stack_api.close()


def build_executors(
    settings: RunnerSettings,
    config: RunnerConfig,
    secrets: SecretStore,
    advise: Callable[[str], str],
) -> dict[JobKind, Executor]:
    """Make an executor for each kind of job that a runner does."""
    clock = SystemClock()
    children = ChildSettings(
        path=settings.path or os.environ.get("PATH", os.defpath), proxy=config.proxy,
        no_proxy=settings.no_proxy or None, ca_bundle=config.ca_bundle,
    )  # fmt: skip
    return {
        JobKind.SCRIPT: ScriptExecutor(children, secrets, clock),
        JobKind.NOOP: NoopExecutor(),
        JobKind.BUILD: make_build_executor(settings, config, children, clock),
        JobKind.SECRETS: SecretsExecutor(secrets, SystemRandomness(), advise),
        **make_install_executors(settings, config, children, secrets, clock, SystemRandomness()),
    }


def list_pinned(stack: StackFolder) -> dict[str, str]:
    """Tell the control plane's keys as the vendor's script named them."""
    return {key.kid: key.public_key for key in stack.read_document().keys}


def stop_at_end_of_input(runner: Runner) -> None:
    """Stop when the supervisor at the other end of standard input is gone."""
    loop = asyncio.get_running_loop()

    def look() -> None:
        if not os.read(0, 1024):
            loop.remove_reader(0)
            runner.request_stop()

    loop.add_reader(0, look)


def _choose_jobs_folder(settings: RunnerSettings) -> Path | None:
    """Choose a place that users of jobs can get to: data folders are closed to everybody."""
    if settings.jobs_folder is not None or not settings.run_as:
        return _resolve(settings.jobs_folder)
    name = hashlib.sha256(str(settings.runner_data.resolve()).encode()).hexdigest()[:12]
    return _JOBS / name


def _advise_by_file(config: RunnerConfig) -> Callable[[str], str]:
    where = config.secrets_file or "the runner's secrets file"
    return lambda _: f"add it to `{where}`"


def _resolve(path: Path | None) -> Path | None:
    return None if path is None else path.resolve()


def audit_file(data: Path) -> Path:
    """Tell where a runner keeps its audit trail."""
    return data / "audit.jsonl"
