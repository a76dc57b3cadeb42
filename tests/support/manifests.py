"""Manifest jobs on a runner's executor, with a real cluster and a control plane in-process."""

import ssl
from collections.abc import Callable, Mapping
from typing import Any

from exclave.runner.executors.deploy_kit import ClusterKit
from exclave.runner.executors.manifest import ManifestExecutor
from exclave.runner.jobs.executor import StopRequest
from exclave.runner.jobs.identity import JobIdentity
from exclave.runner.kube.api.client import ClusterClient
from exclave.runner.kube.api.connection import Connection
from exclave.wire.kubernetes import ClusterRef, ManifestSpec
from exclave.wire.runner import Offer
from tests.support.kubernetes import Cluster
from tests.support.terraform import CLOCK, RANDOM, Ran, TerraformHarness


class PowerCut(BaseException):
    """The runner is gone: nothing that it would still do has an effect."""


class TestToken:
    """The administrator's token of the test cluster."""

    __test__ = False

    def __init__(self, token: str, before: Callable[[], None] = lambda: None) -> None:
        self._token = token
        self._before = before

    async def read_headers(self) -> Mapping[str, str]:
        """Return the header with the token."""
        self._before()
        return {"Authorization": f"Bearer {self._token}"}

    async def renew(self) -> bool:
        """Return False: there is no other token."""
        return False


def make_connection(
    cluster: Cluster, server: str = "", before: Callable[[], None] = lambda: None
) -> Connection:
    """Return a connection to the test cluster, or to a proxy in front of it."""
    tls = None if server else ssl.create_default_context(cadata=cluster.ca)
    return Connection(server or cluster.server, tls, TestToken(cluster.token, before))


def open_client(cluster: Cluster, *, read_only: bool = False) -> ClusterClient:
    """Return a client of the test cluster."""
    return ClusterClient(make_connection(cluster), CLOCK, RANDOM, read_only=read_only)


class ManifestHarness:
    """An install, its runner's manifest executor and a namespace of a real cluster."""

    def __init__(
        self, base: TerraformHarness, cluster: Cluster, namespace: str, server: str = ""
    ) -> None:
        self.base, self.cluster, self.namespace, self.server = base, cluster, namespace, server
        self.connection: Connection | None = None
        """A connection in place of the usual one."""
        self.calls = 0
        """Requests to the cluster and calls of the control plane."""
        self.cut_at: int | None = None
        """After this many, the power is cut."""
        base.api.before = self._count_call
        self.kit = ClusterKit(
            children=base.kit.children,
            secrets=base.kit.secrets,
            sealer=base.sealer,
            connect=self._connect,
            open_registry=base.kit.open_registry,
            finder=base.kit.finder,
            clock=CLOCK,
            randomness=RANDOM,
            keep_free_bytes=0,
        )

    async def plan(self, manifest: str | None = None, **more: Any) -> Ran:
        """Plan a text."""
        return await self.run("plan", manifest=manifest, **more)

    async def apply(self, planned: Ran, **more: Any) -> Ran:
        """Apply the plan of a job that has ended."""
        digest = planned.outputs["digest"]
        ref = {"execution_id": planned.offer.execution_id, "digest": digest}
        return await self.run("apply", plan=ref, approved_digest=digest, **more)

    async def deploy(self, manifest: str, **more: Any) -> Ran:
        """Plan and apply a text."""
        place = {"namespace": more["namespace"]} if "namespace" in more else {}
        planned = await self.plan(manifest, **place)
        assert planned.outcome.state == "succeeded", planned.text
        return await self.apply(planned, **more)

    async def tear_down(self, **more: Any) -> Ran:
        """Plan and apply the removal of everything."""
        planned = await self.plan(destroy=True, **more)
        assert planned.outcome.state == "succeeded", planned.text
        return await self.apply(planned, destroy=True, **more)

    async def run(
        self,
        operation: str,
        *,
        approved_digest: str | None = None,
        offer: Offer | None = None,
        hand_in: bool = True,
        **more: Any,
    ) -> Ran:
        """Run one job and report its outcome."""
        return await self.base.run_job(
            ManifestExecutor(self.kit),
            self.make_spec(operation, **more),
            hand_in=hand_in,
            offer=offer,
            approved_digest=approved_digest,
        )

    @property
    def stop(self) -> StopRequest:
        """What stops the job that runs."""
        return self.base.stop

    def make_spec(self, operation: str, **more: Any) -> ManifestSpec:
        """Return a job of the workspace `component:web`."""
        given = {
            "operation": operation,
            "workspace": "component:web",
            "cluster": {"type": "kubeconfig"},
            "namespace": self.namespace,
            "timeout_s": 120.0,
            **more,
        }
        return ManifestSpec.model_validate(given)

    async def read_plan(self, planned: Ran) -> dict[str, Any]:
        """Return the readable document of a plan."""
        return await self.base.read_plan(planned)

    async def _connect(
        self,
        cluster: ClusterRef,
        fill: Callable[[str], str],
        identity: JobIdentity | None = None,
    ) -> Connection:
        del cluster, fill, identity
        return self.connection or make_connection(self.cluster, self.server, self._count)

    def _count(self) -> None:
        self.calls += 1
        if self.cut_at is not None and self.calls > self.cut_at:
            raise PowerCut

    async def _count_call(self, name: str) -> None:
        del name
        self._count()
