"""A namespace that an interrupted teardown began to remove is waited for by the next deploy."""

import asyncio

import pytest

from exclave.wire.jobs import OutcomeState, Reason
from tests.integration.runner.kube.manifests.objects import config_map, write
from tests.support.manifests import ManifestHarness

TEXT = write(config_map("settings", v="1"))
HOLD = {"metadata": {"finalizers": ["bed.example.com/hold"]}}


async def begin_removal(bench: ManifestHarness) -> tuple[str, str]:
    """Deploy into a namespace of its own, and remove it while an object in it is held."""
    name = f"{bench.namespace}-own"
    path = f"/api/v1/namespaces/{name}"
    held = f"{path}/configmaps/settings"
    await bench.deploy(TEXT, namespace=name)
    patch(bench, held, HOLD)
    bench.cluster.request("DELETE", path)
    return name, held


def patch(bench: ManifestHarness, path: str, change: object) -> None:
    headers = {"Content-Type": "application/merge-patch+json"}
    assert bench.cluster.api.patch(path, json=change, headers=headers).is_success


async def test_a_deploy_waits_until_the_namespace_is_gone_and_makes_it_again(
    bench: ManifestHarness,
) -> None:
    name, held = await begin_removal(bench)

    planning = asyncio.create_task(bench.plan(TEXT, namespace=name))
    await asyncio.wait({planning}, timeout=1.0)
    assert not planning.done()
    patch(bench, held, {"metadata": {"finalizers": None}})
    applied = await bench.apply(await planning, namespace=name)

    assert applied.outcome.state is OutcomeState.SUCCEEDED, applied.text
    assert bench.cluster.exists(held)
    bench.cluster.api.delete(f"/api/v1/namespaces/{name}")


async def test_a_namespace_that_does_not_go_is_named(
    bench: ManifestHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exclave.runner.kube.changes.namespaces._GOING_S", 0.6)
    name, held = await begin_removal(bench)

    refused = await bench.plan(TEXT, namespace=name)
    patch(bench, held, {"metadata": {"finalizers": None}})

    assert refused.outcome.reason is Reason.LEFTOVERS
    assert f"the namespace `{name}` is being removed since" in refused.outcome.message
