"""A runner process on a module or a chart in a folder; tests start and kill it.

With a cluster it runs helm jobs, without one Terraform jobs.
"""

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
from exclave.runner.executors.terraform import TerraformExecutor, TerraformKit
from exclave.runner.jobs.artifacts import OpenPuller, Puller
from exclave.runner.jobs.environment import ChildSettings
from exclave.runner.jobs.executor import Executor
from exclave.runner.jobs.identity import JobIdentity
from exclave.runner.kube.api.connection import Connection
from exclave.runner.logs.spooled_log import bind_open_log
from exclave.runner.processes.leftovers import kill_leftovers
from exclave.runner.runner import Runner, stop_on_signals
from exclave.runner.secrets.sealing import Sealer
from exclave.runner.secrets.store import FileSecrets
from exclave.runner.terraform.module import TerraformSettings
from exclave.runner.tools.finder import ToolFinder, ToolSettings
from exclave.wire.jobs import JobKind
from exclave.wire.kubernetes import ClusterRef
from tests.support.helm import ChartRegistry
from tests.support.kubernetes import Cluster
from tests.support.kubernetes_tools import need_helm
from tests.support.manifests import make_connection
from tests.support.terraform import PATH, FolderRegistry

CLOCK, RANDOMNESS = SystemClock(), SystemRandomness()


async def run(url: str, data: Path, enrolment: str, executors: dict[JobKind, Executor]) -> None:
    """Run jobs until SIGTERM."""
    config = RunnerConfig(data=data, runner_url=url, keep_free_bytes=0, reserve_bytes=0)
    api = HttpRunnerApi(config.link)
    runner = Runner(
        config,
        api=api,
        clock=CLOCK,
        randomness=RANDOMNESS,
        executors=executors,
        open_log=bind_open_log(CLOCK, RANDOMNESS),
        kill_leftovers=kill_leftovers,
        enrolment_token=enrolment,
    )
    stop_on_signals(runner)
    try:
        await runner.run()
    finally:
        await api.close()


def make_helm(data: Path, chart: Path, shared: Cluster) -> Executor:
    """Return the executor of helm jobs, whose cluster is always this one."""

    async def connect(
        cluster: ClusterRef, fill: Callable[[str], str], identity: JobIdentity | None = None
    ) -> Connection:
        del cluster, fill, identity
        return make_connection(shared)

    kit = ClusterKit(
        children=ChildSettings(path=PATH),
        secrets=FileSecrets(None),
        sealer=Sealer(data, RANDOMNESS),
        finder=ToolFinder(ToolSettings(folder=need_helm().parent, path=PATH, download=False)),
        open_registry=_serve(ChartRegistry(chart)),
        connect=connect,
        clock=CLOCK,
        randomness=RANDOMNESS,
        keep_free_bytes=0,
    )
    return HelmExecutor(kit)


def make_terraform(data: Path, module: Path) -> Executor:
    """Return the executor of Terraform jobs."""
    kit = TerraformKit(
        children=ChildSettings(path=PATH),
        settings=TerraformSettings(),
        secrets=FileSecrets(None),
        sealer=Sealer(data, RANDOMNESS),
        finder=ToolFinder(ToolSettings(folder=data / "tools", path=PATH, download=False)),
        open_registry=_serve(FolderRegistry(module)),
        clock=CLOCK,
        randomness=RANDOMNESS,
        keep_free_bytes=0,
    )
    return TerraformExecutor(kit)


def _serve(registry: Puller) -> OpenPuller:
    @asynccontextmanager
    async def open_registry(uplink: Uplink) -> AsyncIterator[Puller]:
        del uplink
        yield registry

    return open_registry


def main(url: str, data: Path, source: Path, enrolment: str, *cluster: str) -> None:
    """Run the runner; a cluster is its server, an administrator's token, and its folder."""
    executors: dict[JobKind, Executor] = {}
    if cluster:
        server, token, folder = cluster
        named = Cluster(server, token, Path(folder))
        executors[JobKind.HELM] = make_helm(data, source, named)
    else:
        executors[JobKind.TERRAFORM] = make_terraform(data, source)
    asyncio.run(run(url, data, enrolment, executors))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), *sys.argv[4:])
