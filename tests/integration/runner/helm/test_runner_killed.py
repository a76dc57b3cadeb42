"""A runner that is killed in mid-apply: the next one converges, and nothing is left over."""

import asyncio
import os
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from exclave.base.json_values import list_or_empty, object_or_empty
from exclave.control.dispatch import runners
from exclave.domain.jobs import JobId
from exclave.main.server import run_control_plane
from exclave.main.settings import ServerSettings
from exclave.wire.jobs import JobReply
from exclave.wire.kubernetes import HelmSpec
from tests.integration.runner.helm.test_recovery import HOLDING_HOOK
from tests.integration.runner.terraform.runner_site import Site
from tests.support.helm import CHART, WORKSPACE
from tests.support.kubernetes import Cluster
from tests.support.terraform import ARTIFACT
from tests.support.world import make_install, make_org

KILLS = int(os.environ.get("EXCLAVE_TEST_KILLS", "3"))
"""How many moments are tried; each takes seconds, so few in every run and many by wish."""


@dataclass
class HelmSite(Site):
    """A control plane, an install, and a runner's process that does real Helm on a cluster."""

    cluster: Cluster | None = None
    namespace: str = ""

    async def start_runner(self) -> None:
        """Start the runner's process."""
        assert self.cluster is not None
        cluster = (self.cluster.server, self.cluster.token, str(self.cluster.folder))
        await self._start("chart", *cluster)

    async def begin(self, **more: Any) -> JobId:
        """Enqueue a helm job."""
        spec = HelmSpec.model_validate(
            {
                "workspace": WORKSPACE,
                "artifact": ARTIFACT,
                "cluster": {"type": "kubeconfig"},
                "namespace": self.namespace,
                "release": "web",
                **more,
            }
        )
        return await self._enqueue(spec)

    async def plan_with(self, **sets: str) -> JobReply:
        """Plan the chart with values."""
        planned = await self.wait_end(await self.begin(operation="plan", sets=sets))
        assert planned.state == "succeeded", planned.message
        return planned

    async def start_teardown(self) -> JobId:
        """Plan the removal of the release and let the runner begin it."""
        planned = await self.wait_end(await self.begin(operation="plan", destroy=True))
        assert planned.state == "succeeded", planned.message
        digest = planned.outputs["digest"]
        ref = {"execution_id": planned.executions[-1].id, "digest": digest}
        return await self.begin(operation="apply", destroy=True, plan=ref)


@asynccontextmanager
async def open_helm_site(folder: Path, cluster: Cluster, namespace: str) -> AsyncIterator[HelmSite]:
    """Serve, enrol the runner of an install, and end it afterwards."""
    settings = ServerSettings(data=folder / "server", control_port=0, runner_port=0)
    for name, content in CHART.items():
        path = folder / "chart" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    async with run_control_plane(settings) as plane:
        user = await make_org(plane.deps)
        queue = await make_install(plane.deps, user)
        made = await runners.create_enrolment(plane.deps, user, queue)
        site = HelmSite(
            *(plane.deps, user, queue, plane.runner_url, plane.control_url, folder, made.token),
            cluster=cluster,
            namespace=namespace,
        )
        await site.start_runner()
        try:
            yield site
        finally:
            await site.stop_runner()


async def test_a_runner_killed_in_mid_teardown_blocks_neither_a_deploy_nor_a_teardown(
    tmp_path: Path, cluster: Cluster, namespace: str
) -> None:
    base = f"/api/v1/namespaces/{namespace}"
    records = f"{base}/secrets?labelSelector=owner=helm"
    async with open_helm_site(tmp_path, cluster, namespace) as site:
        (tmp_path / "chart" / "templates" / "hook.yaml").write_text(
            HOLDING_HOOK["templates/hook.yaml"]
        )
        await site.apply(await site.plan_with(holds="true"))
        removing = await site.start_teardown()
        await site.wait(lambda: has_uninstalling(cluster, records))
        await site.kill_runner()
        await site.start_runner()
        lost = await site.wait_end(removing)

        deployed = await site.apply(await site.plan_with(greeting="again"))
        removed = await site.wait_end(await site.start_teardown())

    assert lost.state == "lost", lost.message
    assert deployed.state == "succeeded", deployed.message
    assert removed.state == "succeeded", removed.message
    assert list_or_empty(cluster.request("GET", records)["items"]) == []
    assert not cluster.exists(f"{base}/configmaps/web-settings")


async def has_uninstalling(cluster: Cluster, records: str) -> bool:
    """Return whether a release is being removed."""
    return bool(list_or_empty(cluster.request("GET", f"{records},status=uninstalling")["items"]))


@pytest.mark.parametrize("seed", range(KILLS))
async def test_a_killed_runner_leaves_nothing_that_the_next_one_does_not_repair(
    tmp_path: Path, cluster: Cluster, namespace: str, seed: int
) -> None:
    rng = random.Random(seed)
    async with open_helm_site(tmp_path, cluster, namespace) as site:
        planned = await site.plan_with(extra="true", greeting="first")
        applying = await site.start_apply(planned)
        await asyncio.sleep(rng.uniform(0.1, 1.5))
        await site.kill_runner()
        await site.start_runner()
        await site.wait_end(applying)

        repaired = await site.apply(await site.plan_with(greeting="last"))

    assert repaired.state == "succeeded", repaired.message
    base = f"/api/v1/namespaces/{namespace}"
    settings = object_or_empty(cluster.request("GET", f"{base}/configmaps/web-settings")["data"])
    assert settings["greeting"] == "last"
    assert not cluster.exists(f"{base}/configmaps/web-extra")
    records = list_or_empty(
        cluster.request("GET", f"{base}/secrets?labelSelector=owner=helm,status=deployed")["items"]
    )
    assert len(records) == 1
