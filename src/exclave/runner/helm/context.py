"""What the steps of one helm job share: the cluster, the tool, the state."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from exclave.base.json_values import JsonObject
from exclave.runner.commands import helm
from exclave.runner.commands.helm import Argv
from exclave.runner.helm.ownership import ReleaseOwner
from exclave.runner.helm.records import Driver
from exclave.runner.helm.values import write_values
from exclave.runner.jobs.context import Captured, JobContext
from exclave.runner.jobs.placeholders import Filler
from exclave.runner.kube.api.client import ClusterClient
from exclave.runner.kube.changes.marked import add_marked
from exclave.runner.kube.changes.state import KubeState
from exclave.runner.kube.changes.state_session import StateSession
from exclave.runner.kube.health.probes import RunInPod
from exclave.runner.kube.pull_secrets import PullSecrets, ReadPullLogin, read_no_login
from exclave.runner.processes.child import Command
from exclave.runner.secrets.sealing import Sealer
from exclave.wire.kubernetes import HelmSpec


@dataclass(frozen=True, slots=True)
class HelmContext:
    """One job of a release. Made by the executor."""

    context: JobContext
    spec: HelmSpec
    client: ClusterClient
    state: StateSession
    sealer: Sealer
    filler: Filler
    tool: str
    kubeconfig: Path
    run_in_pod: RunInPod
    opa: str = ""
    """The program that evaluates policies, if there are any."""
    read_pull_login: ReadPullLogin = read_no_login

    @property
    def pull_secrets(self) -> PullSecrets:
        """The login of the registry for the release's pods."""
        log, part = self.context.log, self.spec.workspace.removeprefix("component:")
        return PullSecrets(
            self.client, self.queue, part, self.read_pull_login, log.hide, log.system
        )

    @property
    def owner(self) -> ReleaseOwner:
        """The release as the owner of its objects."""
        spec = self.spec
        return ReleaseOwner(spec.release, spec.namespace, take_ownership=spec.take_ownership)

    @property
    def queue(self) -> str:
        """The queue of the install, which is on every record that this install makes."""
        return self.context.job.uplink.queue_id

    @property
    def chart(self) -> Path:
        """The folder of the chart in the workspace."""
        return self.context.workspace.work / "chart"

    async def read_state(self) -> KubeState:
        """Return the state of the part, see `StateSession.read`.

        Of a part that is adopted, it has what lives in the cluster too, in case it was lost.
        """
        spec = self.spec
        state = await self.state.read(
            "helm", spec.namespace, spec.release, any_cluster=spec.takes_any_cluster
        )
        if not spec.adopt:
            return state
        return await add_marked(self.client, self.owner, state, self.context.log.system)

    async def run_helm(self, name: str, argv: Argv, driver: Driver) -> Captured:
        """Run helm against the cluster's proxy; its errors are in the log, its answer is not."""
        workspace = self.context.workspace
        ours = {"KUBECONFIG": str(self.kubeconfig), "HELM_DRIVER": driver}
        env = self.context.build_env(helm.build_helm_env(workspace.home), ours)
        command = Command(argv, _drop_proxy(env), workspace.work)
        return await self.context.capture(command, name=f"`helm {name}`")

    def write_values(self, name: str, values: JsonObject) -> Path:
        """Write a file of values for helm; only the job's user can read it."""
        file = self.context.workspace.folder / name
        self.context.workspace.write(file, write_values(values))
        return file


def _drop_proxy(env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without a web proxy: the cluster's proxy is on the loopback."""
    return {name: value for name, value in env.items() if not name.upper().endswith("_PROXY")}
