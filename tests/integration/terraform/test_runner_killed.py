"""Kill -9 of the runner in mid-apply: over HTTP, with processes that outlive it."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from exclave.base.errors import NotFound
from exclave.control import jobs, reconcile, runners, tf_workspaces
from exclave.control.deps import Deps
from exclave.domain.identity import InstallId, QueueId, User
from exclave.domain.jobs import JobId
from exclave.main.server import run_control_plane
from exclave.main.settings import ServerSettings
from exclave.storage import tables
from exclave.wire.jobs import JobReply
from tests.terraform_kit import has_begun, make_spec
from tests.world import job, make_install, make_org, run_workflow

WORKSPACE = "component:db"
MODULE = """
resource "terraform_data" "first" {}
resource "terraform_data" "slow" {
  depends_on = [terraform_data.first]
  provisioner "local-exec" { command = "while ! test -e GATE; do sleep 0.1; done" }
}
"""


@dataclass
class Site:
    """A control plane, an install, and its runner's process."""

    deps: Deps
    user: User
    queue: QueueId
    url: str
    folder: Path
    enrolment: str
    running: list[asyncio.subprocess.Process] = field(default_factory=list)

    @property
    def data(self) -> Path:
        return self.folder / "runner"

    async def start_runner(self) -> None:
        module = self.folder / "module"
        with (self.folder / "runner.log").open("ab") as out:
            self.running.append(
                await asyncio.create_subprocess_exec(
                    sys.executable, "-m", "tests.terraform_runner", self.url, str(self.data),
                    str(module), self.enrolment, stdout=out, stderr=out,
                    env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)},
                )
            )  # fmt: skip

    async def kill_runner(self) -> None:
        self.running[-1].send_signal(signal.SIGKILL)
        await self.running[-1].wait()

    async def begin(self, **more: Any) -> JobId:
        """Enqueue a Terraform job; the runner can do no other kind, so it waits until it is one."""
        spec = make_spec(**more)
        step = job("work", lanes=[WORKSPACE], mutating=spec.operation == "apply")
        flow = await run_workflow(self.deps, self.user, self.queue, step)
        found = flow.steps[0].job_id
        assert found is not None
        change = {"spec": spec.model_dump(mode="json"), "kind": "terraform"}
        await self.deps.db.write(
            lambda tx: (
                tx.run(
                    update(tables.jobs).where(tables.jobs.c.id == found).values(**change)
                ).rowcount
            )
        )
        self.deps.hub.wake([f"queue:{self.queue}"])
        return JobId(found)

    async def show(self, found: JobId) -> JobReply:
        return await jobs.show_job(self.deps, self.user, found)

    async def wait_end(self, found: JobId) -> JobReply:
        async def ended() -> bool:
            return (await self.show(found)).finished_at is not None

        await self.wait(ended)
        return await self.show(found)

    async def wait(self, check: Callable[[], Awaitable[bool]]) -> None:
        for _ in range(1200):
            if await check():
                return
            await asyncio.sleep(0.05)
        raise AssertionError((self.folder / "runner.log").read_text()[-3000:])

    async def begin_apply(self) -> JobId:
        """Bring an apply to the point where its first resource is made and its second waits."""
        planned = await self.wait_end(await self.begin(operation="plan"))
        assert planned.state == "succeeded", planned.message
        ref = {
            "execution_id": planned.executions[-1].id,
            "digest": planned.outputs["digest"],
        }
        found = await self.begin(operation="apply", plan=ref)

        async def waits() -> bool:
            journals = self.data.glob("executions/*/journal.jsonl")
            return any(has_begun(file.read_bytes(), "terraform_data.slow") for file in journals)

        await self.wait(waits)
        return found


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    settings = ServerSettings(data=tmp_path / "server", control_port=0, runner_port=0)
    (tmp_path / "module").mkdir()
    text = MODULE.replace("GATE", str(tmp_path / "gate"))
    (tmp_path / "module" / "main.tf").write_text(text)
    async with run_control_plane(settings) as plane:
        user = await make_org(plane.deps)
        queue = await make_install(plane.deps, user)
        made = await runners.create_enrolment(plane.deps, user, queue)
        found = Site(plane.deps, user, queue, plane.runner_url, tmp_path, made.token)
        await found.start_runner()
        yield found
        (tmp_path / "gate").touch()
        if found.running[-1].returncode is None:
            found.running[-1].terminate()
            await found.running[-1].wait()


async def test_what_was_made_but_not_saved_is_listed_with_import_blocks(site: Site) -> None:
    found = await site.begin_apply()

    await site.kill_runner()
    await site.start_runner()
    ended = await site.wait_end(found)

    assert (ended.state, ended.reason) == ("lost", "runner_restarted")
    orphans = (await reconcile.list_orphans(site.deps, site.user, InstallId(site.queue))).orphans
    assert {(one.address, one.certainty) for one in orphans} == {
        ("terraform_data.first", "created"),
        ("terraform_data.slow", "unknown"),
    }
    assert any(
        one.import_block.startswith("import {\n  to = terraform_data.first") for one in orphans
    )
    shown = await tf_workspaces.show_workspace(
        site.deps, site.user, InstallId(site.queue), WORKSPACE, None
    )
    assert shown.lock is not None
    assert shown.lock.stale


async def test_nothing_is_there_before_the_first_apply(site: Site) -> None:
    with pytest.raises(NotFound):
        await tf_workspaces.show_workspace(
            site.deps, site.user, InstallId(site.queue), WORKSPACE, None
        )
