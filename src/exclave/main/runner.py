"""The runner as a process."""

import os
from pathlib import Path

from exclave.base.clock import SystemClock
from exclave.base.ids import SystemRandomness
from exclave.client.runner import HttpRunnerApi
from exclave.main.settings import RunnerSettings
from exclave.runner.config import RunnerConfig
from exclave.runner.environment import ChildSettings
from exclave.runner.executors.noop import NoopExecutor
from exclave.runner.executors.script import ScriptExecutor
from exclave.runner.leftovers import kill_leftovers
from exclave.runner.logs.shipped import bind_open_log
from exclave.runner.loop import Runner, stop_on_signals
from exclave.runner.secrets import FileSecrets
from exclave.wire.jobs import JobKind


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
    )


async def run_runner(settings: RunnerSettings) -> None:
    """Run until SIGTERM or SIGINT, or until the control plane takes the identity away."""
    config = tell_config(settings)
    clock = SystemClock()
    randomness = SystemRandomness()
    api = HttpRunnerApi(config.link)
    children = ChildSettings(
        path=settings.path or os.environ.get("PATH", os.defpath), proxy=config.proxy,
        no_proxy=settings.no_proxy or None, ca_bundle=config.ca_bundle,
    )  # fmt: skip
    script = ScriptExecutor(children, FileSecrets(config.secrets_file), clock)
    runner = Runner(
        config, api=api, clock=clock, randomness=randomness,
        executors={JobKind.SCRIPT: script, JobKind.NOOP: NoopExecutor()},
        open_log=bind_open_log(clock, randomness), kill_leftovers=kill_leftovers,
        enrolment_token=settings.enrolment or None,
    )  # fmt: skip
    stop_on_signals(runner)
    try:
        await runner.run()
    finally:
        await api.close()


def _resolve(path: Path | None) -> Path | None:
    return None if path is None else path.resolve()


def audit_file(data: Path) -> Path:
    """Tell where a runner keeps its audit trail."""
    return data / "audit.jsonl"
