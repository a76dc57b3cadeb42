"""An app that was really synced, an install of it, and a runner that pretends to run Terraform."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from exclave.control.apps import apps
from exclave.control.deps import Deps
from exclave.control.dispatch import polls
from exclave.control.install_state.state import read_state
from exclave.control.installs import installs
from exclave.control.installs.workflow_requests import start_work
from exclave.control.orgs.accounts import who_am_i
from exclave.control.stacks import stacks
from exclave.control.workflows import workflows
from exclave.domain.identity import InstallId, QueueId, User
from exclave.domain.workflows import WorkflowId, WorkflowState
from exclave.wire.apps import NewApp
from exclave.wire.envelope import open_envelope
from exclave.wire.installs import NewInstall, StartWork, WorkflowKind
from exclave.wire.jobs import JobKind, OutcomeState, Reason
from exclave.wire.runner import PROTOCOL, Dispatch, Offer, Outcome, Poll
from exclave.wire.specs import ActionSpec, BuildSpec, SecretsSpec, TerraformSpec
from exclave.wire.stacks import StackReport
from exclave.wire.workflows import Approve, StepReply, WorkflowReply
from tests.support.apps import sync
from tests.support.world import Peer, make_peer

NOTICEBOARD = Path(__file__).parents[2] / "examples" / "noticeboard"
FACTS = {"folder": "/srv/stack", "hostname": "here"}


def succeed(**outputs: Any) -> Outcome:
    """A good end."""
    return Outcome(state=OutcomeState.SUCCEEDED, reason=Reason.COMPLETED, outputs=outputs)


def fail(reason: Reason = Reason.ACCESS_DENIED, message: str = "broken") -> Outcome:
    """A bad end."""
    return Outcome(state=OutcomeState.FAILED, reason=reason, message=message)


def digest_of(*parts: object) -> str:
    """Name something by a digest."""
    return "sha256:" + hashlib.sha256(repr(parts).encode()).hexdigest()


@dataclass
class Life:
    """The install, its two runners, and what ran on them."""

    deps: Deps
    user: User
    install: str
    app: str
    build_peer: Peer
    peer: Peer
    builds: dict[str, BuildSpec] = field(default_factory=dict)
    """The jobs that built the app, by part."""
    ran: list[str] = field(default_factory=list)
    """`plan component:api`, `apply sandbox`, `action check`, …, in the order of their ends."""
    specs: dict[str, Any] = field(default_factory=dict)
    """The newest specification of each."""
    answers: dict[str, list[Outcome]] = field(default_factory=dict)
    """Ends that are to come instead of the usual ones, by what runs."""
    outputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Terraform outputs by part."""

    async def poll(self) -> list[Offer]:
        """Ask for work, and take none of it yet."""
        return await _poll(self.peer)

    def open(self, offer: Offer) -> Dispatch:
        """Read what is offered."""
        return _open(self.peer, offer)

    async def step(self, *, only: Callable[[str], bool] = lambda _: True) -> int:
        """Let the runner take what is offered and end it; tell how many jobs that were."""
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

    async def offers(self) -> list[Offer]:
        """Take what is offered, and do nothing with it."""
        return await _poll(self.peer)

    async def run(self, rounds: int = 60) -> None:
        """Work until nothing is offered any more."""
        for _ in range(rounds):
            if not await self.step():
                return

    async def report(self) -> None:
        """Phone home."""
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
        """Look at a workflow."""
        return await workflows.show_workflow(self.deps, self.user, WorkflowId(workflow))

    async def steps(self, workflow: str) -> dict[str, StepReply]:
        """Look at the steps of a workflow."""
        return {step.name: step for step in (await self.show(workflow)).steps}

    async def approve(self, workflow: str, step: str) -> None:
        """Approve what a gate asks about."""
        digest = (await self.steps(workflow))[step].digest
        wish = Approve(digest=digest)
        await workflows.approve_step(self.deps, self.user, WorkflowId(workflow), step, wish)

    async def state(self) -> dict[str, Any]:
        """Read the newest state."""
        return await self.deps.db.read(lambda tx: read_state(tx, self.user.org, self.install))

    def _answer(self, name: str, dispatch: Dispatch) -> Outcome:
        if self.answers.get(name):
            return self.answers[name].pop(0)
        match dispatch.spec:
            case TerraformSpec(operation="plan") as spec:
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
            case TerraformSpec() as spec:
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
    """Outputs as the noticeboard's modules have them."""
    name = part.removeprefix("component:")
    return {
        "sandbox": {"folder": "/srv/stack/noticeboard", "name": "acme"},
        "network": {"id": "net-acme"},
        "storage": {"path": "/srv/store"},
        "page": {"url": "http://127.0.0.1:8790/"},
    }.get(name, {"address": f"{name}.internal"})


def name_job(dispatch: Dispatch) -> str:
    """Say what a job does."""
    match dispatch.spec:
        case TerraformSpec() as spec:
            verb = f"destroy-{spec.operation}" if spec.destroy else spec.operation
            return f"{verb} {spec.workspace}"
        case ActionSpec() as spec:
            return f"action {spec.env.get('TRIGGER_TYPE')} {spec.steps[0].name}"
        case BuildSpec() as spec:
            return f"build {spec.part}"
        case _:
            return str(dispatch.spec.kind)


async def build_all(deps: Deps, peer: Peer, outcome: Outcome | None = None) -> dict[str, BuildSpec]:
    """Pretend to build whatever is asked for; answer the jobs by part."""
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


async def live(
    deps: Deps,
    user: User,
    directory: Path = NOTICEBOARD,
    *,
    approve_all: bool = True,
    provision: bool = True,
) -> tuple[Life, str]:
    """Sync an app, build it, make an install; answer it and the workflow that provisions it."""
    name = directory.name
    await apps.create_app(deps, user, NewApp(name=name))
    await sync(deps, user, directory)
    queue = QueueId((await who_am_i(deps, user)).org.build_queue_id)
    build_peer = await make_peer(deps, user, queue, "builder")
    builds = await build_all(deps, build_peer)
    wish = NewInstall(name="acme", app=name, approve_all=approve_all, provision=provision)
    made = await installs.create_install(deps, user, wish)
    peer = await make_peer(deps, user, QueueId(made.id))
    return Life(deps, user, made.id, name, build_peer, peer, builds=builds), made.workflow_id or ""


async def provision(deps: Deps, user: User, directory: Path = NOTICEBOARD) -> Life:
    """Make an install and provision it; what ran until then is forgotten."""
    life, workflow = await live(deps, user, directory)
    await life.report()
    await life.run()
    assert (await life.show(workflow)).state is WorkflowState.SUCCEEDED
    life.ran.clear()
    return life


async def _poll(peer: Peer) -> list[Offer]:
    peer.polls += 1
    peer.no += 1
    reply = await polls.poll(
        peer.deps,
        peer.who,
        Poll(
            boot=peer.boot,
            no=peer.no,
            nonce=f"nonce-{peer.boot:06d}-{peer.polls:06d}",
            free=8,
            executions=list(peer.alive),
            max_hold_s=0.0,
            version="test",
            protocol=PROTOCOL,
            capabilities=list(JobKind),
        ),
    )
    return reply.offers


def _open(peer: Peer, offer: Offer) -> Dispatch:
    trusted = {key.kid: key.public_key for key in peer.enrolled.keys}
    return open_envelope(offer.envelope, trusted)
