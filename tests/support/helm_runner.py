"""A runner process for helm jobs on a chart in a folder; tests start and kill it."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from exclave.base.clock import SystemClock
from exclave.base.ids import SystemRandomness
from exclave.client.runner import HttpRunnerApi
from exclave.runner.config import RunnerConfig
from exclave.runner.control_plane.execution_api import Uplink
from exclave.runner.executors.deploy_kit import ClusterKit
from exclave.runner.executors.helm import HelmExecutor
from exclave.runner.jobs.artifacts import Puller
from exclave.runner.jobs.environment import ChildSettings
from exclave.runner.kube.api.connection import Connection
from exclave.runner.logs.spooled_log import bind_open_log
from exclave.runner.processes.leftovers import kill_leftovers
from exclave.runner.runner import Runner, stop_on_signals
from exclave.runner.secrets.sealing import Sealer
from exclave.runner.secrets.store import FileSecrets
from exclave.runner.tools.finder import ToolFinder, ToolSettings
from exclave.wire.jobs import JobKind
from exclave.wire.kubernetes import ClusterRef
from tests.support.helm import ChartRegistry
from tests.support.kubernetes import Cluster
from tests.support.kubernetes_tools import need_helm
from tests.support.manifests import make_connection
from tests.support.terraform import PATH


async def run(url: str, data: Path, chart: Path, enrolment: str, shared: Cluster) -> None:
    """Run jobs until SIGTERM."""
    clock, randomness = SystemClock(), SystemRandomness()

    @asynccontextmanager
    async def open_registry(uplink: Uplink) -> AsyncIterator[Puller]:
        del uplink
        yield ChartRegistry(chart)

    async def connect(cluster: ClusterRef, fill: Callable[[str], str]) -> Connection:
        del cluster, fill
        return make_connection(shared)

    kit = ClusterKit(
        children=ChildSettings(path=PATH),
        secrets=FileSecrets(None),
        sealer=Sealer(data, randomness),
        finder=ToolFinder(ToolSettings(folder=need_helm().parent, path=PATH, download=False)),
        open_registry=open_registry,
        connect=connect,
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
        executors={JobKind.HELM: HelmExecutor(kit)},
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
    named = Cluster(sys.argv[5], sys.argv[6], Path(sys.argv[7]))
    asyncio.run(run(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4], named))
