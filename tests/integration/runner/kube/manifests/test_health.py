"""Parts that stay healthy after their rollout, and parts that do not, on a real API server."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from exclave.runner.executors.health import HealthExecutor
from exclave.wire.jobs import Reason
from exclave.wire.kubernetes import HealthSpec
from tests.integration.runner.kube.manifests.objects import deployment, write
from tests.support.manifests import ManifestHarness
from tests.support.terraform import Ran

APP = write(deployment("web"))
BLOCKING = {"window_s": 2.0, "block": True}


async def look(bench: ManifestHarness, **rules: Any) -> Ran:
    """Run a health job of the workspace `component:web`."""
    spec = HealthSpec.model_validate(
        {
            "workspace": "component:web",
            "cluster": {"type": "kubeconfig"},
            "namespace": bench.namespace,
            "rules": {"window_s": 2.0, **rules},
        }
    )
    return await bench.base.run_job(HealthExecutor(bench.kit), spec)


async def fail_pods(bench: ManifestHarness, failure: str) -> None:
    """Let the pods of the app fail from now on."""
    pods = f"/api/v1/namespaces/{bench.namespace}/pods"
    listed: Any = bench.cluster.request("GET", pods)
    for pod in listed["items"]:
        path = f"{pods}/{pod['metadata']['name']}"
        pod["metadata"].setdefault("annotations", {})["bed/fail"] = failure
        bench.cluster.request("PUT", path, pod)
    for _ in range(100):
        live: Any = bench.cluster.request(
            "GET", f"/apis/apps/v1/namespaces/{bench.namespace}/deployments/web"
        )
        if not live["status"].get("availableReplicas"):
            return
        await asyncio.sleep(0.1)
    raise AssertionError(json.dumps(live["status"]))


@pytest.fixture
async def port() -> AsyncIterator[int]:
    """Return a port of the runner's machine that answers with 503."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def test_a_part_whose_pods_run_is_healthy(bench: ManifestHarness) -> None:
    await bench.deploy(APP)

    looked = await look(bench)

    assert looked.outcome.outputs == {"health": {"state": "healthy", "reason": ""}}


async def test_a_part_whose_pods_crashed_since_is_degraded_and_the_reason_names_them(
    bench: ManifestHarness,
) -> None:
    await bench.deploy(APP)
    await fail_pods(bench, "crash")

    looked = await look(bench, window_s=60.0)

    health: Any = looked.outcome.outputs["health"]
    assert (looked.outcome.state, health["state"]) == ("succeeded", "degraded")
    name = f"Deployment {bench.namespace}/web"
    assert f"{name}: container app restarted (exit code 1; 3 in all)" in health["reason"]


async def test_a_check_that_is_not_required_is_told_and_decides_nothing(
    bench: ManifestHarness, port: int
) -> None:
    await bench.deploy(APP)
    probes = [
        {"name": "page", "type": "http", "url": f"http://127.0.0.1:{port}/healthz"},
        {"name": "open", "type": "tcp", "url": f"tcp://127.0.0.1:{port}"},
    ]

    told = await look(bench, probes=probes, required=["open", "readiness"])
    decisive = await look(bench, probes=probes)

    assert told.outcome.outputs == {"health": {"state": "healthy", "reason": ""}}
    sentence = f"probe page: GET http://127.0.0.1:{port}/healthz answers 503"
    assert sentence in told.text
    assert decisive.outcome.outputs == {"health": {"state": "degraded", "reason": sentence}}


async def test_a_command_needs_a_ready_pod_and_its_failure_is_told(bench: ManifestHarness) -> None:
    await bench.deploy(APP)
    probes = [{"name": "db", "type": "exec", "command": ["pg_isready", "-h", "db"]}]

    looked = await look(bench, probes=probes)

    health: Any = looked.outcome.outputs["health"]
    assert health["state"] == "degraded"  # a pod without the annotation serves no commands
    assert health["reason"].startswith("probe db: exit code 1: ")


@pytest.mark.parametrize(
    ("ends", "state", "reason"),
    [
        ("0 accepting connections", "healthy", ""),
        (
            "3 no answer to {argv}",
            "degraded",
            'probe db: exit code 3: no answer to ["pg_isready", "-h", "$(id)"]',
        ),
    ],
)
async def test_a_command_runs_in_a_pod_without_a_shell_and_its_exit_code_decides(
    bench: ManifestHarness, ends: str, state: str, reason: str
) -> None:
    await bench.deploy(write(deployment("web", bed_exec=ends)))
    probes = [{"name": "db", "type": "exec", "command": ["pg_isready", "-h", "$(id)"]}]

    looked = await look(bench, probes=probes)

    assert looked.outcome.outputs == {"health": {"state": state, "reason": reason}}


async def test_a_deploy_that_depends_on_health_watches_and_succeeds(
    bench: ManifestHarness,
) -> None:
    applied = await bench.deploy(APP, wait={"health": BLOCKING})

    assert (applied.outcome.state, applied.outcome.message) == ("succeeded", "")
    assert "watching for 2 s whether it stays healthy" in applied.text


async def test_a_deploy_that_depends_on_health_fails_with_the_probe_that_fails(
    bench: ManifestHarness,
) -> None:
    probe = {"name": "page", "type": "tcp", "url": "127.0.0.1:1"}

    applied = await bench.deploy(APP, wait={"health": {**BLOCKING, "probes": [probe]}})

    assert applied.outcome.reason is Reason.ROLLOUT_FAILED
    assert applied.outcome.message.startswith("it does not stay healthy: probe page: 127.0.0.1:1: ")


async def test_a_part_that_was_never_deployed_cannot_be_looked_at(bench: ManifestHarness) -> None:
    looked = await look(bench)

    assert looked.outcome.reason is Reason.PLAN_MISSING
