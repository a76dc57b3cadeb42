"""Images of synced components run by digest; others are named in the plan."""

from typing import Any

from tests.integration.runner.kube.manifests.objects import deployment, write
from tests.support.manifests import ManifestHarness

DIGEST = "sha256:" + "a" * 64
IMAGE = {"repository": "registry.example.com/acme/web", "tag": "x1", "digest": DIGEST}
NAME = "registry.example.com/acme/web:x1"


async def test_what_is_approved_and_run_names_the_digest(bench: ManifestHarness) -> None:
    objects = write(deployment("web", image=NAME), deployment("cache", image="redis:7"))

    planned = await bench.plan(objects, images=[IMAGE])
    document = await bench.read_plan(planned)
    applied = await bench.apply(planned, images=[IMAGE])

    assert document["outside_images"] == ["docker.io/library/redis:7 (not pinned)"]
    assert applied.outcome.state == "succeeded"
    path = f"/apis/apps/v1/namespaces/{bench.namespace}/deployments/web"
    live: Any = bench.cluster.request("GET", path)
    containers = live["spec"]["template"]["spec"]["containers"]
    assert containers[0]["image"] == f"{NAME}@{DIGEST}"
    assert (await bench.plan(objects, images=[IMAGE])).outputs["noop"] is True
