"""Image builds as isolated jobs: as a user of their own, and nothing is left of them."""

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from exclave.client.oci.client import OciClient
from exclave.runner.processes import procfs
from exclave.runner.processes.cell import Cells
from exclave.runner.processes.users import JobUser, RunAs, Users
from exclave.wire.jobs import OutcomeState, Reason
from tests.integration.runner.builds.image_kit import Yard
from tests.support.buildah import copy_buildah
from tests.support.registries import serve_registry

UID = 60_570
is_root = sys.platform == "linux" and os.geteuid() == 0
pytestmark = pytest.mark.skipif(not is_root, reason="only root can become others")


@pytest.fixture
def passable() -> Iterator[Path]:
    """A folder that other users may enter."""
    with tempfile.TemporaryDirectory(prefix="exclave-test-", dir="/var/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.fixture
def cells(tmp_path: Path) -> Iterator[Cells]:
    users = Users(RunAs((JobUser(UID, UID, alone=True),)), tmp_path / "claims")
    yield Cells(users)
    users.close()


@pytest.fixture
async def isolated(passable: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Yard]:
    program = copy_buildah(passable / "buildah")
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    with serve_registry(passable / "registry") as url:
        async with OciClient(url) as client:
            yield Yard(passable, client, client.open_repository("apps/demo"))


async def test_a_build_has_many_users_inside_and_one_outside(isolated: Yard, cells: Cells) -> None:
    isolated.cells = cells
    isolated.secrets = {"npm_token": "tok-123456"}
    dockerfile = """FROM scratch
COPY programs /
RUN mkdir /data && chown 1000:1000 /data && id > /root-id
COPY --chown=1000:1000 Dockerfile /mine
USER app
RUN id > /data/id && cat /proc/self/uid_map > /data/map
RUN --mount=type=secret,id=npm_token,uid=1000 cat /run/secrets/npm_token | tr a-z b-za > /data/made
"""

    outcome = await isolated.build({"Dockerfile": dockerfile}, programs=True, secrets=["npm_token"])

    assert (outcome.state, outcome.message) == (OutcomeState.SUCCEEDED, "")
    made = b"".join(await isolated.read_layers(str(outcome.outputs["digest"])))
    assert b"uid=0(root)" in made
    assert b"uid=1000(app)" in made
    assert f"0 {UID} 1".encode() in b" ".join(made.split()), "root is not the job's user outside"
    assert b"upl-123456" in made


async def test_a_cancelled_build_leaves_no_process(isolated: Yard, cells: Cells) -> None:
    isolated.cells = cells
    dockerfile = "FROM scratch\nCOPY programs /\nUSER app\nRUN sleep 543 & sleep 654\n"
    building = asyncio.create_task(isolated.build({"Dockerfile": dockerfile}, programs=True))
    await _await_process("654")

    isolated.site.bench.stop.request(Reason.CANCELLED, 0.5)
    outcome = await building

    assert (outcome.state, outcome.reason) == (OutcomeState.CANCELLED, Reason.CANCELLED)
    assert not _find_sleepers("543", "654")
    assert not procfs.list_users().get(UID)
    assert not procfs.list_mapped(UID)


async def _await_process(seconds: str) -> None:
    for _ in range(600):
        if _find_sleepers(seconds):
            return
        await asyncio.sleep(0.05)
    pytest.fail("the build did not begin")


def _find_sleepers(*seconds: str) -> list[bytes]:
    wanted = [f"sleep\0{one}\0".encode() for one in seconds]
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = process.read_bytes()
        except OSError:
            continue
        if line in wanted:
            found.append(line)
    return found
