"""The access of a runner to clusters: what the customer named, and the account of its pod."""

from functools import partial

from exclave.base.clock import SystemClock
from exclave.runner.config import RunnerConfig
from exclave.runner.kube.access.clusters import ClusterConnector
from exclave.runner.kube.access.in_cluster import find_pod_account
from exclave.runner.kube.access.named_kubeconfigs import read_kubeconfigs
from exclave.runner.kube.access.tokens import NoteToken


def make_connector(config: RunnerConfig, path: str, note: NoteToken) -> ClusterConnector:
    """Return the connector of a runner; `path` is where plugins of kubeconfigs are looked for."""
    return ClusterConnector(
        SystemClock(),
        note,
        partial(read_kubeconfigs, config.data),
        pod=find_pod_account(),
        path=path,
    )
