"""Connections to the clusters that jobs name, made of what the customer's side holds."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from exclave.base.clock import Clock
from exclave.runner.jobs.identity import JobIdentity
from exclave.runner.kube.access.aks import AzureEndpoints, issue_aks_token
from exclave.runner.kube.access.eks import AwsEndpoints, issue_eks_token
from exclave.runner.kube.access.exec_plugin import run_plugin
from exclave.runner.kube.access.gke import GcpEndpoints, issue_gke_token
from exclave.runner.kube.access.in_cluster import PodAccount
from exclave.runner.kube.access.job_tokens import issue_as
from exclave.runner.kube.access.kubeconfig import (
    KubeContext,
    read_inline_kubeconfig,
    read_kubeconfig_file,
)
from exclave.runner.kube.access.tls import make_tls, require_ca
from exclave.runner.kube.access.tokens import (
    FixedToken,
    Issue,
    IssuedTokens,
    NoteToken,
    read_token_file,
)
from exclave.runner.kube.api.connection import Connection, Credential, NoCredential
from exclave.runner.kube.api.errors import AccessRefused
from exclave.wire.kubernetes import (
    AksCluster,
    ClusterRef,
    EksCluster,
    GkeCluster,
    InCluster,
    InlineCluster,
    KubeconfigCluster,
)


@dataclass(frozen=True, slots=True)
class NamedKubeconfig:
    """A kubeconfig of the customer, kept as a path; `context` is empty for the current one."""

    file: Path
    context: str = ""


class ReadKubeconfigs(Protocol):
    """Returns the customer's kubeconfigs by name, as they are now."""

    def __call__(self) -> Mapping[str, NamedKubeconfig]:
        """Return them."""
        ...


class ConnectCluster(Protocol):
    """Makes the connection to the cluster that a job names."""

    async def __call__(
        self,
        cluster: ClusterRef,
        fill: Callable[[str], str],
        identity: JobIdentity | None = None,
    ) -> Connection:
        """Return the connection, as a role; `fill` replaces placeholders by their values."""
        ...


@dataclass(frozen=True, slots=True)
class Clouds:
    """Where the token issuers of the clouds are."""

    aws: AwsEndpoints = field(default_factory=AwsEndpoints)
    gcp: GcpEndpoints = field(default_factory=GcpEndpoints)
    azure: AzureEndpoints = field(default_factory=AzureEndpoints)


@dataclass(frozen=True, slots=True)
class ClusterConnector:
    """Makes the connection that a job names; the Stack's outputs identify the roles in it."""

    clock: Clock
    note_token: NoteToken
    kubeconfigs: ReadKubeconfigs = dict
    roles: Mapping[str, str] = field(default_factory=dict)
    """ARNs, accounts and client ids by the name of the role, from the Stack's own outputs."""
    pod: PodAccount | None = None
    path: str = ""
    """PATH of the plugins of kubeconfigs."""
    clouds: Clouds = field(default_factory=Clouds)

    async def connect(
        self,
        cluster: ClusterRef,
        fill: Callable[[str], str] = str,
        identity: JobIdentity | None = None,
    ) -> Connection:
        """Return the connection to a cluster; `fill` replaces placeholders by their values.

        In a cloud it is made as the role of the job, if it has one.
        """
        match cluster:
            case KubeconfigCluster():
                return await asyncio.to_thread(self._open_named, cluster.name)
            case InlineCluster():
                return self._open_context(read_inline_kubeconfig(fill(cluster.kubeconfig)))
            case InCluster():
                return self._open_pod()
            case EksCluster() | GkeCluster() | AksCluster() if identity is not None:
                issue = issue_as(identity, cluster, self.clock)
            case EksCluster():
                arn = self._find_role(cluster.role)
                issue = issue_eks_token(cluster, arn, self.clock, self.clouds.aws)
            case GkeCluster():
                account = self._find_role(cluster.role)
                issue = issue_gke_token(account, self.clock, self.clouds.gcp)
            case AksCluster():
                client_id = self._find_role(cluster.role)
                issue = issue_aks_token(cluster.server_id, client_id, self.clock, self.clouds.azure)
        tokens = self._issue(issue)
        return Connection(cluster.endpoint.rstrip("/"), make_tls(require_ca(cluster.ca)), tokens)

    def _open_named(self, name: str) -> Connection:
        kubeconfigs = self.kubeconfigs()
        if name not in kubeconfigs:
            known = ", ".join(f"`{known}`" for known in sorted(kubeconfigs)) or "none"
            raise AccessRefused(
                f"the Stack has no kubeconfig `{name}`; it has {known}",
                hint=f"Run `stack up --kubeconfig {name}=FILE` on the Stack's machine.",
            )
        entry = kubeconfigs[name]
        return self._open_context(read_kubeconfig_file(entry.file, entry.context))

    def _open_context(self, context: KubeContext) -> Connection:
        tls = make_tls(context.ca_pem, context.client)
        credential = self._choose_credential(context)
        return Connection(context.server, tls, credential, context.proxy, context.tls_name)

    def _issue(self, issue: Issue) -> Credential:
        return IssuedTokens(issue, self.clock, self.note_token)

    def _choose_credential(self, context: KubeContext) -> Credential:
        """Return the credential; a file wins over a token, as it does for kubectl."""
        if context.client is not None:
            self.note_token(context.client[1])
        if context.token_file is not None:
            return self._issue(read_token_file(context.token_file))
        if context.token is not None:
            self.note_token(context.token)
            return FixedToken(context.token)
        if context.plugin is not None:
            return self._issue(run_plugin(context.plugin, context, self.clock, self.path))
        return NoCredential()

    def _open_pod(self) -> Connection:
        if self.pod is None:
            raise AccessRefused("the runner does not run in a cluster")
        return self.pod.connect(self.clock, self.note_token)

    def _find_role(self, name: str) -> str:
        if not name:
            return ""
        if name not in self.roles:
            raise AccessRefused(
                f"the Stack knows no role `{name}`",
                hint="Run the newest Stack of the app; it makes the roles that jobs name.",
            )
        return self.roles[name]


def list_texts(cluster: ClusterRef | None) -> list[str]:
    """Return the texts of a cluster that may have placeholders in them."""
    return [cluster.kubeconfig] if isinstance(cluster, InlineCluster) else []
