"""Real Terraform on a runner's executor, with a real control plane in the same process."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar, cast

from exclave.api.problems import STATUS
from exclave.base.archives import pack_folder
from exclave.base.clock import SystemClock
from exclave.base.errors import Problem
from exclave.base.ids import SystemRandomness
from exclave.base.secrets import Secret
from exclave.client.problems import RemoteProblem, Unreachable
from exclave.client.runner import RunnerApi
from exclave.client.transport import Link
from exclave.control.deps import Deps
from exclave.control.installs import sensitive_inputs
from exclave.control.terraform import states
from exclave.domain.identity import QueueId, User
from exclave.domain.jobs import ExecutionId
from exclave.runner.control_plane.access_token import Session
from exclave.runner.control_plane.execution_api import Uplink
from exclave.runner.executors.terraform import TerraformExecutor, TerraformKit
from exclave.runner.jobs.artifacts import Puller
from exclave.runner.jobs.environment import ChildSettings
from exclave.runner.jobs.executor import Executor, JobRun, StopRequest
from exclave.runner.logs.job_log import open_log
from exclave.runner.secrets.sealing import Sealer
from exclave.runner.secrets.store import FileSecrets
from exclave.runner.terraform.module import TerraformSettings
from exclave.runner.tools.finder import ToolFinder, ToolSettings
from exclave.wire.kubernetes import HealthSpec, HelmSpec, ManifestSpec
from exclave.wire.logs import LogRecord, Stream
from exclave.wire.runner import Offer, Outcome
from exclave.wire.specs import TerraformSpec
from exclave.wire.states import LockState, SealedState, StateReply, UnlockState
from exclave.wire.terraform import AttachmentReply, SensitiveValues
from tests.support.files import get_file, get_state, put_file, put_state
from tests.support.world import FakeRunner, job, run_workflow
from tests.unit.runner.work_kit import make_dispatch, read_spool

T = TypeVar("T")

CLOCK = SystemClock()
RANDOM = SystemRandomness()
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/go/bin"
ARTIFACT = {"repository": "apps/demo", "digest": "sha256:" + "0" * 64}


def has_begun(journal: bytes, address: str) -> bool:
    """Return whether the apply of a resource has begun; a plan is not enough."""
    lines = map(json.loads, journal.split(b"\n")[:-1])
    return any(one["type"] == "apply_start" and one["addr"] == address for one in lines)


@dataclass
class LocalWorkApi:
    """The runner's API as direct calls of use cases; can simulate an outage."""

    deps: Deps
    peer: FakeRunner
    down: bool = False
    calls: list[str] = field(default_factory=list)
    before: Callable[[str], Awaitable[None]] | None = None

    async def _call(self, name: str, call: Callable[[], Awaitable[T]]) -> T:
        self.calls.append(name)
        if self.before is not None:
            await self.before(name)
        if self.down:
            raise Unreachable("the control plane is down")
        try:
            return await call()
        except Problem as problem:
            raise RemoteProblem(
                STATUS[problem.kind], problem.code, problem.message, facts=problem.facts
            ) from problem

    async def put_attachment(
        self, token: str, execution_id: str, name: str, *, epoch: int, data: bytes
    ) -> AttachmentReply:
        del token
        return await self._call(
            f"put {name}",
            lambda: put_file(
                self.deps, self.peer.who, ExecutionId(execution_id), name, epoch, data
            ),
        )

    async def get_attachment(self, token: str, execution_id: str, name: str) -> bytes:
        del token
        return await self._call(
            f"get {name}",
            lambda: get_file(self.deps, self.peer.who, ExecutionId(execution_id), name),
        )

    async def read_state(
        self, token: str, execution_id: str, *, epoch: int, workspace: str
    ) -> SealedState | None:
        del token
        return await self._call(
            "read",
            lambda: get_state(
                self.deps, self.peer.who, ExecutionId(execution_id), epoch, workspace
            ),
        )

    async def write_state(
        self,
        token: str,
        execution_id: str,
        *,
        epoch: int,
        workspace: str,
        lock_id: str,
        state: SealedState,
    ) -> StateReply:
        del token
        return await self._call(
            "write",
            lambda: put_state(
                self.deps,
                self.peer.who,
                ExecutionId(execution_id),
                epoch,
                workspace,
                lock_id,
                state,
            ),
        )

    async def lock_state(self, token: str, execution_id: str, request: LockState) -> None:
        del token
        await self._call(
            "lock",
            lambda: states.lock_state(self.deps, self.peer.who, ExecutionId(execution_id), request),
        )

    async def unlock_state(self, token: str, execution_id: str, request: UnlockState) -> None:
        del token
        await self._call(
            "unlock",
            lambda: states.unlock_state(
                self.deps, self.peer.who, ExecutionId(execution_id), request
            ),
        )

    async def get_sensitive(self, token: str, execution_id: str, *, epoch: int) -> SensitiveValues:
        del token
        return await self._call(
            "sensitive",
            lambda: sensitive_inputs.get_sensitive(
                self.deps, self.peer.who, ExecutionId(execution_id), epoch
            ),
        )


class FolderRegistry:
    """Serves folders as artifacts."""

    def __init__(self, module: Path) -> None:
        self.module = module

    async def pull_layer(self, repository: str, digest: str, target: Path) -> Path:
        del repository, digest
        with target.open("wb") as out:
            pack_folder(self.module, out)
        return target


@dataclass
class Ran:
    """A finished execution: its outcome, log records and folder."""

    offer: Offer
    outcome: Outcome
    records: list[LogRecord]
    folder: Path

    @property
    def outputs(self) -> dict[str, Any]:
        return self.outcome.outputs

    @property
    def text(self) -> str:
        return "\n".join(record.text for record in self.records)


class TerraformHarness:
    """An install, its runner's Terraform executor, and a module written by the test."""

    def __init__(
        self,
        deps: Deps,
        user: User,
        queue: QueueId,
        peer: FakeRunner,
        folder: Path,
        secrets: Mapping[str, str] | None = None,
        terraform: TerraformSettings | None = None,
        **tools: Any,
    ) -> None:
        self.deps, self.user, self.queue, self.peer = deps, user, queue, peer
        self.folder = folder
        self.module = folder / "module"
        self.module.mkdir()
        self.executions = folder / "executions"
        self.data = folder / "data"
        self.data.mkdir()
        secret_file = folder / "secrets.json"
        secret_file.write_text(json.dumps(dict(secrets or {})))
        secret_file.chmod(0o600)
        self.api = LocalWorkApi(deps, peer)
        self.sealer = Sealer(self.data, RANDOM)
        settings = {"folder": folder / "tools", "path": PATH, "download": False, **tools}
        self.kit = TerraformKit(
            children=ChildSettings(path=PATH),
            settings=terraform or TerraformSettings(),
            secrets=FileSecrets(secret_file),
            sealer=self.sealer,
            finder=ToolFinder(ToolSettings(**settings)),
            open_registry=self._open_registry,
            clock=CLOCK,
            randomness=RANDOM,
            timeout_grace_s=5.0,
            keep_free_bytes=0,
        )
        self.stop = StopRequest()
        self.tool = "terraform"

    def write(self, text: str, name: str = "main.tf") -> None:
        (self.module / name).write_text(text)

    async def offer(self, workspace: str, *, mutating: bool) -> Offer:
        """Start an execution on the lane of a workspace."""
        step = job("work", lanes=[workspace], mutating=mutating)
        await run_workflow(self.deps, self.user, self.queue, step)
        found = (await self.peer.poll()).offers[0]
        await self.peer.start(found.execution_id, found.epoch)
        return found

    def bind(self, offer: Offer) -> Uplink:
        identity = SimpleNamespace(org_id=self.user.org, queue_id=self.queue)

        async def call(send: Callable[[str], Awaitable[T]]) -> T:
            return await send("token")

        session = SimpleNamespace(identity=identity, call=call)
        return Uplink(
            cast("RunnerApi", SimpleNamespace(work=self.api)),
            cast("Session", session),
            execution_id=offer.execution_id,
            epoch=offer.epoch,
            link=Link("http://127.0.0.1"),
            clock=CLOCK,
            randomness=RANDOM,
        )

    async def run(self, spec: TerraformSpec, **more: Any) -> Ran:
        """Run one Terraform job and report its outcome."""
        return await self.run_job(TerraformExecutor(self.kit), spec, **more)

    async def run_job(
        self,
        executor: Executor,
        spec: TerraformSpec | HelmSpec | ManifestSpec | HealthSpec,
        *,
        hand_in: bool = True,
        offer: Offer | None = None,
        **changes: Any,
    ) -> Ran:
        """Run one job and report its outcome; `changes` are those of its dispatch."""
        mutating = not isinstance(spec, HealthSpec) and spec.operation == "apply"
        found = offer or await self.offer(spec.workspace, mutating=mutating)
        self.stop = StopRequest()
        folder = self.executions / found.execution_id
        folder.mkdir(parents=True)
        log, spool = open_log(folder / "log", CLOCK)
        dispatch = make_dispatch(
            spec, execution_id=found.execution_id, epoch=found.epoch, mutating=mutating, **changes
        )
        work = JobRun(dispatch, folder, self.bind(found))
        outcome = await executor.run(work, log, self.stop)
        await asyncio.to_thread(log.close)
        if hand_in:
            await self.peer.hand_in(found.execution_id, found.epoch, outcome)
        return Ran(found, outcome, read_spool(spool), folder)

    async def plan(self, **more: Any) -> Ran:
        return await self.run(make_spec("plan", tool=self.tool, **more))

    async def apply(self, planned: Ran, **more: Any) -> Ran:
        digest = planned.outputs["digest"]
        ref = {"execution_id": planned.offer.execution_id, "digest": digest}
        given = {"approved_digest": digest, **more.pop("changes", {})}
        extra = {name: more.pop(name) for name in ("hand_in", "offer") if name in more}
        spec = make_spec("apply", tool=self.tool, plan=ref, **more)
        return await self.run(spec, **extra, **given)

    async def plan_and_apply(self, **more: Any) -> Ran:
        planned = await self.plan(**more)
        assert planned.outcome.state == "succeeded", planned.text
        return await self.apply(planned, **more)

    async def read_plan(self, planned: Ran) -> dict[str, Any]:
        data = await get_file(
            self.deps, self.peer.who, ExecutionId(planned.offer.execution_id), "plan.json"
        )
        told: dict[str, Any] = json.loads(data)
        return told

    @asynccontextmanager
    async def _open_registry(self, uplink: Uplink) -> AsyncIterator[Puller]:
        del uplink
        yield FolderRegistry(self.module)


def make_spec(operation: str, **more: Any) -> TerraformSpec:
    """Return a job of the workspace `component:db`."""
    return TerraformSpec.model_validate(
        {"operation": operation, "workspace": "component:db", "artifact": ARTIFACT, **more}
    )


def hide(*values: str) -> list[Secret]:
    return [Secret(value) for value in values]


def list_lines(ran: Ran, stream: Stream = Stream.STDOUT) -> list[str]:
    return [record.text for record in ran.records if record.stream is stream]
