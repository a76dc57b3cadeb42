"""Checks of the clusters that the customer named."""

from exclave.base.clock import Clock
from exclave.base.errors import Problem
from exclave.base.ids import Randomness
from exclave.runner.doctor.findings import Finding, fail, from_problem, ok
from exclave.runner.kube.access.clusters import ClusterConnector
from exclave.runner.kube.access.probe import ClusterProbe, ProbedCluster


async def check_clusters(
    connector: ClusterConnector, clock: Clock, randomness: Randomness
) -> list[Finding]:
    """Return a finding for each cluster; a machine without one is no problem."""
    try:
        probed = await ClusterProbe(connector, clock, randomness).read()
    except Problem as problem:
        return [from_problem("clusters", problem)]
    if not probed:
        return [ok("clusters", "no kubeconfig is named; `stack up --kubeconfig FILE` names one")]
    return [_describe(f"cluster {name}", cluster) for name, cluster in sorted(probed.items())]


def _describe(name: str, cluster: ProbedCluster) -> Finding:
    if cluster.reachable:
        return ok(name, f"Kubernetes {cluster.version} accepts the runner's credential")
    return fail(name, cluster.problem, cluster.hint)
