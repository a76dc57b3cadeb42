"""A bench for manifest jobs on an embedded control plane and a real cluster."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.kubernetes import Cluster
from tests.support.manifests import ManifestHarness
from tests.support.terraform import TerraformHarness
from tests.support.world import ManualClock, enrol_fake_runner, make_deps, make_install, make_org


@pytest.fixture
async def bench(tmp_path: Path, cluster: Cluster, namespace: str) -> AsyncIterator[ManifestHarness]:
    deps = make_deps(ManualClock(), seed=os.getpid())
    user = await make_org(deps)
    queue = await make_install(deps, user)
    peer = await enrol_fake_runner(deps, user, queue)
    secrets = {"token": "canary-secret-value"}
    base = TerraformHarness(deps, user, queue, peer, tmp_path, secrets)
    yield ManifestHarness(base, cluster, namespace)
    deps.db.close()
