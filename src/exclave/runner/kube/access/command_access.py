"""Access to a cluster for the commands of an action."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from exclave.base.errors import Problem
from exclave.base.ids import Randomness
from exclave.base.secrets import Secret
from exclave.runner.jobs.context import JobContext
from exclave.runner.kube.access.clusters import ClusterConnector
from exclave.runner.kube.access.journal import ClusterJournal
from exclave.runner.kube.access.proxy import ClusterProxy
from exclave.runner.kube.access.proxy_rules import Mode
from exclave.runner.kube.api.connection import Connection
from exclave.runner.states.journal_file import keep_journal
from exclave.wire.kubernetes import ClusterRef

_ENABLED: Final = "NUON_KUBECONFIG_ENABLED"


@dataclass(frozen=True, slots=True)
class CommandAccess:
    """Opens clusters for commands: they get a kubeconfig of the proxy, and no credential."""

    connector: ClusterConnector
    randomness: Randomness

    @asynccontextmanager
    async def open(
        self,
        context: JobContext,
        cluster: ClusterRef | None,
        fill: Callable[[str], str],
        *,
        required: bool,
    ) -> AsyncIterator[dict[str, str]]:
        """Yield the variables of commands; without a cluster they only say that there is none.

        If a `required` cluster cannot be opened, that is an error, otherwise a line of the log.
        """
        connection = await self._connect(context, cluster, fill, required=required)
        if connection is None:
            yield {_ENABLED: "false"}
            return
        workspace = context.job.dispatch.job_id
        async with keep_journal(context, workspace, ClusterJournal) as journal:
            async with ClusterProxy(
                connection, self.randomness, mode=Mode.WRITE, note=journal.note_request
            ) as proxy:
                context.log.hide([Secret(secret) for secret in proxy.secrets])
                file = proxy.write_kubeconfig(context.workspace)
                yield {_ENABLED: "true", "KUBECONFIG": str(file)}
            if journal.events:
                context.log.system(f"commands sent {journal.events} changes to the cluster")

    async def _connect(
        self,
        context: JobContext,
        cluster: ClusterRef | None,
        fill: Callable[[str], str],
        *,
        required: bool,
    ) -> Connection | None:
        if cluster is None:
            context.log.system("no cluster is known: KUBECONFIG is not set")
            return None
        try:
            return await self.connector.connect(cluster, fill, context.job.identity)
        except Problem as problem:
            if required:
                raise
            context.log.system(f"KUBECONFIG is not set: {problem.message}")
            return None
