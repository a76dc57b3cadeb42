"""The executors of jobs that deploy to clusters: charts and manifests."""

from exclave.base.clock import Clock
from exclave.base.ids import Randomness
from exclave.runner.control_plane.registry_access import OpenRegistry
from exclave.runner.executors.helm import HelmExecutor, HelmKit
from exclave.runner.executors.manifest import ManifestExecutor, ManifestKit
from exclave.runner.jobs.environment import ChildSettings
from exclave.runner.jobs.executor import Executor
from exclave.runner.kube.access.clusters import ClusterConnector
from exclave.runner.secrets.sealing import Sealer
from exclave.runner.secrets.store import SecretStore
from exclave.runner.tools.finder import ToolFinder
from exclave.wire.jobs import JobKind


def make_cluster_executors(
    children: ChildSettings,
    secrets: SecretStore,
    sealer: Sealer,
    finder: ToolFinder,
    registry: OpenRegistry,
    connector: ClusterConnector,
    clock: Clock,
    randomness: Randomness,
) -> dict[JobKind, Executor]:
    """Return the executors of `helm` and `manifest` jobs."""
    helm = HelmKit(
        children=children,
        secrets=secrets,
        sealer=sealer,
        finder=finder,
        open_registry=registry,
        connect=connector.connect,
        clock=clock,
        randomness=randomness,
    )
    manifest = ManifestKit(
        children=children,
        secrets=secrets,
        sealer=sealer,
        connect=connector.connect,
        open_registry=registry,
        finder=finder,
        clock=clock,
        randomness=randomness,
    )
    return {JobKind.HELM: HelmExecutor(helm), JobKind.MANIFEST: ManifestExecutor(manifest)}
