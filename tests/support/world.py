"""A control plane in memory, with an org, an install and fake runners that use the real protocol."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography.fernet import Fernet
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import Connection

from exclave.base.clock import Clock
from exclave.base.ids import Ids, SeededRandomness
from exclave.control.access import authenticate_runner, authenticate_user
from exclave.control.deps import Deps, ServerDeps
from exclave.control.dispatch import enrolment, executions, polls, runners
from exclave.control.dispatch.direct_offers import OFFER, offer_listener
from exclave.control.installs import installs
from exclave.control.keyring import Keyring
from exclave.control.orgs import accounts
from exclave.control.runtime.parked_polls import ParkedPolls
from exclave.control.runtime.sync_folders import SyncFolders
from exclave.control.vault import Vault
from exclave.control.workflows import workflows
from exclave.domain.identity import QueueId, Role, RunnerIdentity, User
from exclave.domain.jobs import ExecutionId
from exclave.domain.timings import Timings
from exclave.storage import keys as stored_keys
from exclave.storage.blobs.base import Blobs
from exclave.storage.blobs.memory import MemoryBlobs
from exclave.storage.engine.database import Database, Tx
from exclave.storage.engine.hub import Hub
from exclave.storage.migrate import upgrade_connection
from exclave.wire.envelope import encode_bytes, public_text
from exclave.wire.identity import GrantModel, NewToken
from exclave.wire.installs import NewInstall
from exclave.wire.jobs import JobKind, OutcomeState, Reason
from exclave.wire.runner import (
    PROTOCOL,
    AskToken,
    Enrol,
    Enrolled,
    Outcome,
    Poll,
    PollReply,
    Renew,
    RenewedExecution,
    RenewReply,
    Result,
    ResultReply,
    Start,
    StartReply,
    token_message,
)
from exclave.wire.specs import JobSpec, NoopSpec
from exclave.wire.workflows import NewStep, NewWorkflow, StepKind, WorkflowReply
from tests.support.shared_statements import choose_sharing_dialect

SEAL = Fernet.generate_key()


class ManualClock:
    """A clock that moves only when it is advanced."""

    def __init__(self) -> None:
        self.at = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.at.timestamp()

    async def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


_schema: list[str] = []


def migrate(connection: Connection) -> None:
    """Migrate a database; an empty one of SQLite gets what the first migration of this run made.

    Migrations take a tenth of a second, and a test each: that is minutes in all.
    """
    is_empty = connection.dialect.name == "sqlite" and not _list_tables(connection)
    if is_empty and _schema:
        for statement in _schema:
            connection.exec_driver_sql(statement)
        return
    upgrade_connection(connection)
    if is_empty:
        found = connection.exec_driver_sql("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
        _schema.extend(row[0] for row in found)
        versions = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalars()
        _schema.extend(f"INSERT INTO alembic_version VALUES ('{version}')" for version in versions)  # noqa: S608


def _list_tables(connection: Connection) -> list[str]:
    return list(connection.exec_driver_sql("SELECT name FROM sqlite_master").scalars())


def make_deps(
    clock: Clock,
    *,
    url: str = "sqlite:///:memory:",
    seed: int = 0,
    timings: Timings | None = None,
    blobs: Blobs | None = None,
    name: str = "srv-1",
    inline: bool = True,
) -> ServerDeps:
    """Build a control plane on a migrated database."""
    ids = Ids(clock, SeededRandomness(seed))
    hub = Hub()
    db = Database(choose_sharing_dialect(url), clock, hub, name=name, inline=inline)
    keyring = Keyring(SEAL, ids, clock)

    def set_up(tx: Tx) -> None:
        migrate(tx.connection)
        stored_keys.add_cluster(tx, "test")
        keyring.ensure_key(tx)

    db.write_now(set_up)
    parked_polls = ParkedPolls()
    hub.handlers[OFFER] = offer_listener(parked_polls, hub)
    return ServerDeps(
        db=db,
        blobs=blobs or MemoryBlobs(),
        hub=hub,
        clock=clock,
        ids=ids,
        keys=keyring,
        vault=Vault(SEAL),
        sync_folders=SyncFolders(Path(tempfile.gettempdir())),
        timings=timings or Timings(),
        parked_polls=parked_polls,
    )


async def make_org(deps: Deps, name: str = "acme") -> User:
    """Create an org and return its first admin."""
    made = await deps.db.write(lambda tx: accounts.create_org(tx, deps, name, "founder"))
    return await authenticate_user(deps, made.token)


async def make_user(deps: Deps, admin: User, role: Role, **scope: str) -> User:
    """Create a user with a role on the org, an app or an install."""
    grant = GrantModel.model_validate({"role": role, **scope})
    wish = NewToken(name="t", account=f"{role}-person", grants=[grant])
    return await authenticate_user(deps, (await accounts.create_token(deps, admin, wish)).token)


async def make_install(deps: Deps, user: User, name: str = "prod") -> QueueId:
    """Create an install and return the id of its queue."""
    return QueueId((await installs.create_install(deps, user, NewInstall(name=name))).id)


@dataclass
class FakeRunner:
    """A runner that sends protocol requests one at a time, as the test calls for them."""

    deps: Deps
    enrolled: Enrolled
    key: Ed25519PrivateKey
    who: RunnerIdentity
    boot: int = 1
    no: int = 0
    alive: list[str] = field(default_factory=list)
    polls: int = 0
    kinds: tuple[JobKind, ...] = (JobKind.SCRIPT, JobKind.NOOP)
    protocol: str = PROTOCOL

    async def poll(
        self,
        free: int = 4,
        *,
        nonce: str | None = None,
        hold: float = 0.0,
        kinds: Sequence[JobKind] = (),
    ) -> PollReply:
        self.polls += 1
        self.no += 1
        return await polls.poll(
            self.deps,
            self.who,
            Poll(
                boot=self.boot,
                no=self.no,
                nonce=nonce or f"nonce-{self.boot:06d}-{self.polls:06d}",
                free=free,
                executions=list(self.alive),
                max_hold_s=hold,
                version="test",
                protocol=self.protocol,
                capabilities=list(kinds or self.kinds),
            ),
        )

    async def start(self, execution: str, epoch: int) -> StartReply:
        self.no += 1
        self.alive.append(execution)
        request = Start(boot=self.boot, no=self.no, epoch=epoch)
        return await executions.start_execution(
            self.deps, self.who, ExecutionId(execution), request
        )

    async def renew(self, epochs: dict[str, int] | None = None) -> RenewReply:
        self.no += 1
        held = [RenewedExecution(id=i, epoch=e) for i, e in (epochs or {}).items()]
        request = Renew(boot=self.boot, no=self.no, executions=held)
        return await executions.renew_executions(self.deps, self.who, request)

    async def hand_in(
        self, execution: str, epoch: int, outcome: Outcome | None = None
    ) -> ResultReply:
        done = outcome or Outcome(state=OutcomeState.SUCCEEDED, reason=Reason.COMPLETED)
        reply = await executions.hand_in(
            self.deps, self.who, ExecutionId(execution), Result(epoch=epoch, outcome=done)
        )
        if execution in self.alive:
            self.alive.remove(execution)
        return reply

    async def work(self, outcome: Outcome | None = None, free: int = 4) -> list[str]:
        """Start and finish all offered jobs; return the executions."""
        reply = await self.poll(free)
        for offer in reply.offers:
            await self.start(offer.execution_id, offer.epoch)
        for offer in reply.offers:
            await self.hand_in(offer.execution_id, offer.epoch, outcome)
        return [offer.execution_id for offer in reply.offers]

    def restarted(self) -> "FakeRunner":
        """Return the same runner after a restart, without executions."""
        return replace(self, boot=self.boot + 1, no=0, alive=[], polls=0)


async def enrol_fake_runner(
    deps: Deps, user: User, queue: QueueId, name: str = "runner"
) -> FakeRunner:
    """Enrol a runner and get its first access token with the real handshake."""
    made = await runners.create_enrolment(deps, user, queue)
    seed = deps.ids.randomness.bits(256).to_bytes(32, "big")
    key = Ed25519PrivateKey.from_private_bytes(seed)
    enrolled = await enrolment.enrol_runner(
        deps,
        Enrol(
            token=made.token,
            public_key=public_text(key),
            name=name,
            version="test",
            protocol=PROTOCOL,
            capabilities=[JobKind.SCRIPT, JobKind.NOOP],
        ),
    )
    token = await ask_token(deps, enrolled.runner_id, key, enrolled.generation)
    who = await authenticate_runner(deps, token)
    return FakeRunner(deps, enrolled, key, who)


async def ask_token(deps: Deps, runner_id: str, key: Ed25519PrivateKey, generation: int) -> str:
    """Prove possession of the key and get an access token."""
    nonce = (await enrolment.issue_nonce(deps, runner_id)).nonce  # type: ignore[arg-type]
    signature = encode_bytes(key.sign(token_message(runner_id, nonce, generation)))
    reply = await enrolment.issue_token(
        deps,
        AskToken(
            runner_id=runner_id,
            nonce=nonce,
            generation=generation,
            signature=signature,
        ),
    )
    return reply.access_token


def job(
    name: str,
    *needs: str,
    lanes: Sequence[str] = (),
    mutating: bool = False,
    spec: JobSpec | None = None,
    priority: int = 0,
) -> NewStep:
    """Return a job step; a no-op by default."""
    return NewStep(
        name=name,
        needs=list(needs),
        job=spec or NoopSpec(),
        mutating=mutating,
        lanes=list(lanes),
        priority=priority,
    )


def gate(name: str, *needs: str) -> NewStep:
    """Return a gate step."""
    return NewStep(name=name, kind=StepKind.GATE, needs=list(needs))


def wait(name: str, *needs: str) -> NewStep:
    """Return a step that waits for an external event."""
    return NewStep(name=name, kind=StepKind.WAIT, needs=list(needs))


async def run_workflow(
    deps: Deps,
    user: User,
    queue: QueueId,
    *steps: NewStep,
    name: str = "flow",
    approve_all: bool = False,
    plan_only: bool = False,
) -> WorkflowReply:
    """Create a workflow of these steps."""
    return await workflows.create_workflow(
        deps,
        user,
        NewWorkflow(
            name=name,
            queue_id=queue,
            steps=list(steps),
            approve_all=approve_all,
            plan_only=plan_only,
        ),
    )
