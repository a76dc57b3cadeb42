"""A bench for helm jobs on an embedded control plane and a real cluster."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from exclave.runner.processes import child, procfs
from tests.support.helm import HelmHarness
from tests.support.kubernetes import Cluster
from tests.support.world import ManualClock, enrol_fake_runner, make_deps, make_install, make_org


@pytest.fixture(autouse=True)
def _equal_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let children compete with everything else on a busy machine: nobody renews leases here."""
    monkeypatch.setattr(child, "NICENESS", 0)


@pytest.fixture
async def bench(tmp_path: Path, cluster: Cluster, namespace: str) -> AsyncIterator[HelmHarness]:
    deps = make_deps(ManualClock(), seed=os.getpid())  # equal ids would end each other's children
    user = await make_org(deps)
    queue = await make_install(deps, user)
    peer = await enrol_fake_runner(deps, user, queue)
    secrets = {"db_password": "canary-secret-value"}
    made = HelmHarness(deps, user, queue, peer, tmp_path, cluster, namespace, secrets)
    yield made
    for folder in made.executions.glob("*"):
        procfs.kill_marked(folder.name)
    deps.db.close()
