"""A runner process for Terraform jobs on a module in a folder; tests start and kill it."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from exclave.base.clock import SystemClock
from exclave.base.ids import SystemRandomness
from exclave.client.runner import HttpRunnerApi
from exclave.runner.config import RunnerConfig
from exclave.runner.control_plane.execution_api import Uplink
from exclave.runner.executors.terraform import TerraformExecutor, TerraformKit
from exclave.runner.jobs.artifacts import Puller
from exclave.runner.jobs.environment import ChildSettings
from exclave.runner.logs.spooled_log import bind_open_log
from exclave.runner.processes.leftovers import kill_leftovers
from exclave.runner.runner import Runner, stop_on_signals
from exclave.runner.secrets.sealing import Sealer
from exclave.runner.secrets.store import FileSecrets
from exclave.runner.terraform.module import TerraformSettings
from exclave.runner.tools.finder import ToolFinder, ToolSettings
from exclave.wire.jobs import JobKind
from tests.support.terraform import PATH, FolderRegistry


async def run(url: str, data: Path, module: Path, enrolment: str) -> None:
    """Run jobs until SIGTERM."""
    clock, randomness = SystemClock(), SystemRandomness()

    @asynccontextmanager
    async def open_registry(uplink: Uplink) -> AsyncIterator[Puller]:
        del uplink
        yield FolderRegistry(module)

    kit = TerraformKit(
        children=ChildSettings(path=PATH),
        settings=TerraformSettings(),
        secrets=FileSecrets(None),
        sealer=Sealer(data, randomness),
        finder=ToolFinder(ToolSettings(folder=data / "tools", path=PATH, download=False)),
        open_registry=open_registry,
        clock=clock,
        randomness=randomness,
        keep_free_bytes=0,
    )
    config = RunnerConfig(data=data, runner_url=url, keep_free_bytes=0, reserve_bytes=0)
    api = HttpRunnerApi(config.link)
    runner = Runner(
        config,
        api=api,
        clock=clock,
        randomness=randomness,
        executors={JobKind.TERRAFORM: TerraformExecutor(kit)},
        open_log=bind_open_log(clock, randomness),
        kill_leftovers=kill_leftovers,
        enrolment_token=enrolment,
    )
    stop_on_signals(runner)
    try:
        await runner.run()
    finally:
        await api.close()


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]))
