"""A control plane, an install, and a runner process that does real Terraform on a module."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import update

from exclave.control.deps import Deps
from exclave.control.dispatch import runners
from exclave.control.orgs import accounts
from exclave.control.workflows import jobs
from exclave.domain.identity import QueueId, Role, User
from exclave.domain.jobs import JobId
from exclave.main.server import run_control_plane
from exclave.main.settings import ServerSettings
from exclave.storage.tables import work
from exclave.wire.identity import GrantModel, NewToken
from exclave.wire.jobs import JobReply
from exclave.wire.kubernetes import HelmSpec
from exclave.wire.specs import TerraformSpec
from tests.faults.site import clean_env, exclave
from tests.support.terraform import has_begun, make_spec
from tests.support.world import job, make_install, make_org, run_workflow

WORKSPACE = "component:db"
SLOW = """
resource "terraform_data" "first" {}
resource "terraform_data" "slow" {
  depends_on = [terraform_data.first]
  provisioner "local-exec" { command = "while ! test -e GATE; do sleep 0.1; done" }
}
"""
"""Its second resource waits for a file."""


@dataclass
class Site:
    """A control plane, an install, and its runner's process."""

    deps: Deps
    user: User
    queue: QueueId
    url: str
    control_url: str
    folder: Path
    enrolment: str
    running: list[asyncio.subprocess.Process] = field(default_factory=list)

    @property
    def data(self) -> Path:
        return self.folder / "runner"

    async def start_runner(self) -> None:
        """Start the runner's process."""
        await self._start("module")

    async def _start(self, source: str, *cluster: str) -> None:
        argv = (self.url, str(self.data), str(self.folder / source), self.enrolment, *cluster)
        names = ("PATH", "HOME")
        env = {name: os.environ[name] for name in names if name in os.environ}
        with (self.folder / "runner.log").open("ab") as out:
            self.running.append(
                await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", "tests.support.runner_process", *argv),
                    stdout=out,
                    stderr=out,
                    env={**env, "PYTHONPATH": os.pathsep.join(sys.path)},
                )
            )

    async def kill_runner(self) -> None:
        self.running[-1].send_signal(signal.SIGKILL)
        await self.running[-1].wait()

    async def stop_runner(self) -> None:
        if self.running[-1].returncode is None:
            self.running[-1].terminate()
            await self.running[-1].wait()

    async def begin(self, **more: Any) -> JobId:
        """Enqueue a Terraform job."""
        return await self._enqueue(make_spec(**more))

    async def _enqueue(self, spec: TerraformSpec | HelmSpec) -> JobId:
        """Enqueue a job; the runner can do no other kind, so it waits until it is of this one."""
        lanes = [spec.workspace]
        step = job("work", lanes=lanes, mutating=spec.operation == "apply")
        flow = await run_workflow(self.deps, self.user, self.queue, step)
        found = flow.steps[0].job_id
        assert found is not None
        change = {"spec": spec.model_dump(mode="json"), "kind": spec.kind}
        await self.deps.db.write(
            lambda tx: (
                tx.run(update(work.jobs).where(work.jobs.c.id == found).values(**change)).rowcount
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

    def write(self, text: str) -> None:
        """Write the module anew."""
        (self.folder / "module" / "main.tf").write_text(text)

    async def plan(self) -> JobReply:
        """Plan the module as it is now."""
        planned = await self.wait_end(await self.begin(operation="plan"))
        assert planned.state == "succeeded", planned.message
        return planned

    async def start_apply(self, planned: JobReply) -> JobId:
        """Let the runner apply a plan."""
        digest = planned.outputs["digest"]
        ref = {"execution_id": planned.executions[-1].id, "digest": digest}
        return await self.begin(operation="apply", plan=ref)

    async def apply(self, planned: JobReply | None = None) -> JobReply:
        """Plan, if there is no plan, and apply it to its end."""
        return await self.wait_end(await self.start_apply(planned or await self.plan()))

    async def begin_apply(self) -> JobId:
        """Bring an apply to the point where its first resource is made and its second waits."""
        found = await self.start_apply(await self.plan())

        async def waits() -> bool:
            journals = self.data.glob("executions/*/journal.jsonl")
            return any(has_begun(file.read_bytes(), "terraform_data.slow") for file in journals)

        await self.wait(waits)
        return found

    async def ask(self, *words: str) -> Any:
        """Run a command of the CLI for its JSON, as an operator."""
        wish = NewToken(name="t", account="person", grants=[GrantModel(role=Role.OPERATOR)])
        made = await accounts.create_token(self.deps, self.user, wish)
        env = clean_env({"URL": self.control_url, "TOKEN": made.token})
        run = await asyncio.create_subprocess_exec(
            *exclave(),
            *words,
            "--json",
            env=env,
            cwd=self.folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await run.communicate()
        assert run.returncode == 0, (words, out, err)
        return json.loads(out)


@asynccontextmanager
async def open_site(folder: Path, module: str) -> AsyncIterator[Site]:
    """Serve, enrol the runner of an install, and end it afterwards; `GATE` is a file to be made."""
    settings = ServerSettings(data=folder / "server", control_port=0, runner_port=0)
    (folder / "module").mkdir()
    async with run_control_plane(settings) as plane:
        user = await make_org(plane.deps)
        queue = await make_install(plane.deps, user)
        made = await runners.create_enrolment(plane.deps, user, queue)
        found = Site(
            plane.deps, user, queue, plane.runner_url, plane.control_url, folder, made.token
        )
        found.write(module.replace("GATE", str(folder / "gate")))
        await found.start_runner()
        try:
            yield found
        finally:
            (folder / "gate").touch()
            await found.stop_runner()
