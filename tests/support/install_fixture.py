"""A synced app, an install of it, and runners that fake the results of builds and Terraform."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from exclave.control.apps import apps
from exclave.control.deps import Deps
from exclave.control.install_state.state import read_named_state
from exclave.control.installs import installs
from exclave.control.installs.workflow_requests import start_work
from exclave.control.orgs.accounts import who_am_i
from exclave.control.stacks import stacks
from exclave.control.workflows import workflows
from exclave.domain.identity import InstallId, QueueId, User
from exclave.domain.workflows import WorkflowId, WorkflowState
from exclave.wire.apps import NewApp
from exclave.wire.envelope import open_envelope
from exclave.wire.images import ImageSpec
from exclave.wire.installs import NewInstall, StartWork, WorkflowKind
from exclave.wire.jobs import JobKind, OutcomeState, Reason
from exclave.wire.kubernetes import ClusterJob
from exclave.wire.runner import Dispatch, Offer, Outcome
from exclave.wire.specs import ActionSpec, BuildSpec, SecretsSpec, TerraformSpec
from exclave.wire.stacks import StackReport
from exclave.wire.workflows import Approve, StepReply, WorkflowReply
from tests.support.apps import sync
from tests.support.world import FakeRunner, enrol_fake_runner

NOTICEBOARD = Path(__file__).parents[2] / "examples" / "noticeboard"
FACTS = {"folder": "/srv/stack", "hostname": "here"}


def succeed(**outputs: Any) -> Outcome:
    """Return a successful outcome."""
    return Outcome(state=OutcomeState.SUCCEEDED, reason=Reason.COMPLETED, outputs=outputs)


def fail(reason: Reason = Reason.ACCESS_DENIED, message: str = "broken") -> Outcome:
    """Return a failed outcome."""
    return Outcome(state=OutcomeState.FAILED, reason=reason, message=message)


def digest_of(*parts: object) -> str:
    """Return a digest of any values."""
    return "sha256:" + hashlib.sha256(repr(parts).encode()).hexdigest()


@dataclass
class InstallFixture:
    """An install, its build runner and its install runner, and the jobs that ran on them."""

    deps: Deps
    user: User
    install: str
    app: str
    build_peer: FakeRunner
    peer: FakeRunner
    builds: dict[str, BuildSpec] = field(default_factory=dict)
    """The jobs that built the app, by part."""
    ran: list[str] = field(default_factory=list)
    """`plan component:api`, `apply sandbox`, `action check`, …, in the order of completion."""
    specs: dict[str, Any] = field(default_factory=dict)
    """The latest specification of each job."""
    answers: dict[str, list[Outcome]] = field(default_factory=dict)
    """Outcomes that replace the default ones, by job."""
    outputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Terraform outputs by part."""

    async def poll(self) -> list[Offer]:
        """Poll and return the offers without starting them."""
        return await _poll(self.peer)

    def open(self, offer: Offer) -> Dispatch:
        """Return the job of an offer."""
        return _open(self.peer, offer)

    async def step(self, *, only: Callable[[str], bool] = lambda _: True) -> int:
        """Start and finish all offered jobs; return the number of offers."""
        reply = await _poll(self.peer)
        for offer in reply:
            dispatch = _open(self.peer, offer)
            name = name_job(dispatch)
            if not only(name):
                continue
            await self.peer.start(offer.execution_id, offer.epoch)
            self.ran.append(name)
            self.specs[name] = dispatch.spec
            await self.peer.hand_in(offer.execution_id, offer.epoch, self._answer(name, dispatch))
        return len(reply)

    async def run(self, rounds: int = 60) -> None:
        """Run jobs until none is offered."""
        for _ in range(rounds):
            if not await self.step():
                return

    async def report(self) -> None:
        """Send a Stack report."""
        await stacks.report_stack(
            self.deps,
            self.peer.who,
            StackReport(
                facts=FACTS,
                secrets={"database_password": True},
            ),
        )

    async def start(self, kind: WorkflowKind, **more: Any) -> str:
        """Start work on the install; answer its workflow."""
        wish = StartWork(kind=kind, **more)
        return (await start_work(self.deps, self.user, InstallId(self.install), wish)).id

    async def show(self, workflow: str) -> WorkflowReply:
        """Return a workflow."""
        return await workflows.show_workflow(self.deps, self.user, WorkflowId(workflow))

    async def steps(self, workflow: str) -> dict[str, StepReply]:
        """Return the steps of a workflow by name."""
        return {step.name: step for step in (await self.show(workflow)).steps}

    async def approve(self, workflow: str, step: str) -> None:
        """Approve a gate."""
        digest = (await self.steps(workflow))[step].digest
        wish = Approve(digest=digest)
        await workflows.approve_step(self.deps, self.user, WorkflowId(workflow), step, wish)

    async def state(self) -> dict[str, Any]:
        """Return the latest install state."""
        _, state = await self.deps.db.read(
            lambda tx: read_named_state(tx, self.user.org, self.install)
        )
        return dict(state)

    def _answer(self, name: str, dispatch: Dispatch) -> Outcome:
        if self.answers.get(name):
            return self.answers[name].pop(0)
        match dispatch.spec:
            case ImageSpec() as spec:
                repository = f"registry.acme/{spec.target.folder}"
                digest = spec.artifact.digest
                return succeed(image={"repository": repository, "tag": spec.tag, "digest": digest})
            case TerraformSpec(operation="plan") | ClusterJob(operation="plan") as spec:
                return succeed(
                    digest=digest_of(dispatch.execution_id),
                    noop=False,
                    serial=0,
                    lineage="l",
                    summary={"add": 1},
                    outputs={},
                    policies={"warn": []},
                    part=spec.workspace,
                )
            case (TerraformSpec() | ClusterJob()) as spec:
                part = spec.workspace
                return succeed(outputs=self.outputs.get(part, usual_outputs(part)), serial=1)
            case SecretsSpec() as spec:
                found = {each.name: {"exists": True, "length": 64} for each in spec.secrets}
                return succeed(secrets=found)
            case ActionSpec() as spec:
                return succeed(status="200", steps={spec.steps[0].name: {"status": "200"}})
            case _:
                return succeed()


def usual_outputs(part: str) -> dict[str, Any]:
    """Return the outputs of the noticeboard's modules."""
    name = part.removeprefix("component:")
    return {
        "sandbox": {"folder": "/srv/stack/noticeboard", "name": "acme"},
        "network": {"id": "net-acme"},
        "storage": {"path": "/srv/store"},
        "page": {"url": "http://127.0.0.1:8790/"},
    }.get(name, {"address": f"{name}.internal"})


def name_job(dispatch: Dispatch) -> str:
    """Return a name for a job, such as `plan component:api`."""
    match dispatch.spec:
        case ImageSpec() as spec:
            return f"{'remove' if spec.destroy else 'sync'} {spec.target.folder}"
        case (TerraformSpec() | ClusterJob()) as spec:
            verb = f"destroy-{spec.operation}" if spec.destroy else spec.operation
            return f"{verb} {spec.workspace}"
        case ActionSpec() as spec:
            return f"action {spec.env.get('TRIGGER_TYPE')} {spec.steps[0].name}"
        case BuildSpec() as spec:
            return f"build {spec.part}"
        case _:
            return str(dispatch.spec.kind)


async def build_all(
    deps: Deps, peer: FakeRunner, outcome: Outcome | None = None
) -> dict[str, BuildSpec]:
    """Finish all build jobs with fake results; return them by part."""
    del deps
    built: dict[str, BuildSpec] = {}
    while offers := await _poll(peer):
        for offer in offers:
            dispatch = _open(peer, offer)
            assert isinstance(dispatch.spec, BuildSpec)
            built[dispatch.spec.part] = dispatch.spec
            await peer.start(offer.execution_id, offer.epoch)
            await peer.hand_in(
                offer.execution_id,
                offer.epoch,
                outcome
                or succeed(
                    digest=digest_of(dispatch.spec.source),
                    commit="",
                    size=10,
                    files=1,
                    provenance=digest_of("provenance"),
                ),
            )
    return built


async def make_install_fixture(
    deps: Deps,
    user: User,
    directory: Path = NOTICEBOARD,
    *,
    approve_all: bool = True,
    provision: bool = True,
) -> tuple[InstallFixture, str]:
    """Sync and build an app and create an install; return it and its provision workflow."""
    name = directory.name
    await apps.create_app(deps, user, NewApp(name=name))
    await sync(deps, user, directory)
    queue = QueueId((await who_am_i(deps, user)).org.build_queue_id)
    build_peer = await enrol_fake_runner(deps, user, queue, "builder")
    builds = await build_all(deps, build_peer)
    wish = NewInstall(name="acme", app=name, approve_all=approve_all, provision=provision)
    made = await installs.create_install(deps, user, wish)
    peer = await enrol_fake_runner(deps, user, QueueId(made.id))
    return InstallFixture(
        deps, user, made.id, name, build_peer, peer, builds=builds
    ), made.workflow_id or ""


async def provision(deps: Deps, user: User, directory: Path = NOTICEBOARD) -> InstallFixture:
    """Return a provisioned install, with an empty list of jobs that ran."""
    life, workflow = await make_install_fixture(deps, user, directory)
    await life.report()
    await life.run()
    assert (await life.show(workflow)).state is WorkflowState.SUCCEEDED
    life.ran.clear()
    return life


async def _poll(peer: FakeRunner) -> list[Offer]:
    return (await peer.poll(free=8, kinds=tuple(JobKind))).offers


def _open(peer: FakeRunner, offer: Offer) -> Dispatch:
    trusted = {key.kid: key.public_key for key in peer.enrolled.keys}
    return open_envelope(offer.envelope, trusted)
