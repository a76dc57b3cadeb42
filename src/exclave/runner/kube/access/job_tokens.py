"""Tokens of clusters in a cloud, made of the role of the job that works on them."""

from typing import Final

from exclave.base.clock import Clock
from exclave.runner.cloud.sigv4 import AwsKeys
from exclave.runner.jobs.identity import JobIdentity
from exclave.runner.kube.access.cloud_http import refuse_access
from exclave.runner.kube.access.eks import make_eks_token
from exclave.runner.kube.access.tokens import Issue, IssuedToken
from exclave.wire.kubernetes import AksCluster, EksCluster, GkeCluster

_USABLE_S: Final = 300.0
"""A role's credential lasts longer than that whenever it is handed out."""


def issue_as(
    identity: JobIdentity, cluster: EksCluster | GkeCluster | AksCluster, clock: Clock
) -> Issue:
    """Return an issuer of tokens for a cluster, as the role of a job."""

    async def issue() -> IssuedToken:
        with refuse_access():
            match cluster:
                case EksCluster():
                    token = make_eks_token(AwsKeys(*await identity.read_keys()), cluster, clock)
                case GkeCluster():
                    token = await identity.read_token()
                case AksCluster():
                    token = await identity.read_token(cluster.server_id)
        return IssuedToken(token, _USABLE_S)

    return issue
