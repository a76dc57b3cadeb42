"""A bench for Terraform jobs on an embedded control plane."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from exclave.runner.processes import child, procfs
from tests.support.terraform import PATH, TerraformHarness
from tests.support.tools import need_terraform, need_tofu
from tests.support.world import ManualClock, enrol_fake_runner, make_deps, make_install, make_org


@pytest.fixture(autouse=True)
def _equal_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let children compete with everything else on a busy machine: nobody renews leases here."""
    monkeypatch.setattr(child, "NICENESS", 0)


TOOLS = ["terraform", *(["tofu"] if os.environ.get("EXCLAVE_TEST_TOFU") else [])]
"""Building tofu takes minutes: `make tofu` asks for it, CI does not."""


@pytest.fixture(params=TOOLS)
def tool(request: pytest.FixtureRequest) -> Path:
    """Whatever does the work."""
    return need_tofu() if request.param == "tofu" else need_terraform()


@pytest.fixture
async def bench(tmp_path: Path, tool: Path) -> AsyncIterator[TerraformHarness]:
    deps = make_deps(ManualClock(), seed=os.getpid())  # equal ids would end each other's children
    user = await make_org(deps)
    queue = await make_install(deps, user)
    peer = await enrol_fake_runner(deps, user, queue)
    secrets = {"token": "canary-secret-value", "pin": "4711"}
    made = TerraformHarness(
        deps, user, queue, peer, tmp_path, secrets, path=f"{tool.parent}:{PATH}"
    )
    made.tool = tool.name
    yield made
    for folder in made.executions.glob("*"):
        procfs.kill_marked(folder.name)
    deps.db.close()
