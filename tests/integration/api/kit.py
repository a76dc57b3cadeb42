"""Both APIs over a real control plane, with callers of every kind."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from exclave.api.control import build_control_app
from exclave.api.runner import build_runner_app
from exclave.control.access import authenticate_user
from exclave.control.deps import Deps, ServerDeps
from exclave.control.dispatch import runners
from exclave.control.orgs import accounts
from exclave.domain.identity import QueueId, Role, User
from exclave.domain.timings import Timings
from exclave.wire.identity import GrantModel, NewToken
from tests.support.databases import open_database
from tests.support.world import (
    FakeRunner,
    ManualClock,
    ask_token,
    enrol_fake_runner,
    make_deps,
    make_install,
)

GARBAGE = "xcl_" + "z" * 52
MISSING = "0" * 26


@dataclass(frozen=True)
class Caller:
    """A user together with the secret that proves it."""

    user: User
    token: str


@dataclass(frozen=True)
class Enrolled:
    """A runner that speaks by hand, and an access token of it."""

    peer: FakeRunner
    token: str

    @property
    def id(self) -> str:
        return self.peer.enrolled.runner_id


@dataclass(frozen=True)
class Site:
    """Both APIs, and an org with an install and a runner."""

    deps: ServerDeps
    clock: ManualClock
    control: httpx.AsyncClient
    runner: httpx.AsyncClient
    admin: Caller
    queue: QueueId
    enrolled: Enrolled

    async def call(
        self,
        method: str,
        path: str,
        token: str | None = None,
        *,
        app: str = "control",
        headers: Mapping[str, Any] | None = None,
        **rest: Any,
    ) -> httpx.Response:
        """Send a request; as the admin (or the runner) unless another token is given."""
        own = self.admin.token if app == "control" else self.enrolled.token
        bearer = own if token is None else token
        sent = {**({"Authorization": f"Bearer {bearer}"} if bearer else {}), **(headers or {})}
        client = self.control if app == "control" else self.runner
        return await client.request(method, path, headers=sent, **rest)


def open_client(app: Any) -> httpx.AsyncClient:
    """Call an app without a socket; what it raises is a bug of its edge, so it is raised here."""
    transport = httpx.ASGITransport(app, raise_app_exceptions=True)
    return httpx.AsyncClient(transport=transport, base_url="http://exclave.test")


@contextmanager
def open_deps(name: str, timings: Timings | None = None) -> Iterator[ServerDeps]:
    """Build a control plane on one of the databases; its time is that of the tests."""
    with open_database(name) as url, pytest.MonkeyPatch.context() as patch:
        made = make_deps(ManualClock(), url=url, timings=timings)
        # The clock of the tests counts, also where the database has one of its own.
        patch.setattr(type(made.db.dialect), "has_clock", False)
        yield made
        made.db.close()


async def make_site(deps: ServerDeps) -> Site:
    """Put an org with an install and a runner behind both APIs."""
    clock = deps.clock
    assert isinstance(clock, ManualClock)
    admin = await make_admin(deps, "acme")
    queue = await make_install(deps, admin.user)
    return Site(
        deps=deps,
        clock=clock,
        control=open_client(build_control_app(deps)),
        runner=open_client(build_runner_app(deps)),
        admin=admin,
        queue=queue,
        enrolled=await enrol(deps, admin.user, queue),
    )


async def make_admin(deps: Deps, org: str) -> Caller:
    """Create an org; its founder is its admin."""
    made = await deps.db.write(lambda tx: accounts.create_org(tx, deps, org, "founder"))
    return Caller(await authenticate_user(deps, made.token), made.token)


async def make_caller(
    deps: Deps, admin: User, role: Role, *, life_s: float = 3600, install: str = ""
) -> Caller:
    """Create an account with one role, on the org or on one install."""
    grant = GrantModel(role=role)
    if install:
        grant = GrantModel.model_validate({"role": role, "scope": "install", "scope_id": install})
    wish = NewToken(name="test", account=f"{role}-person", grants=[grant], expires_in_s=life_s)
    made = await accounts.create_token(deps, admin, wish)
    return Caller(await authenticate_user(deps, made.token), made.token)


async def enrol(deps: Deps, user: User, queue: QueueId) -> Enrolled:
    """Enrol a runner by the real handshake and get an access token for it."""
    peer = await enrol_fake_runner(deps, user, queue)
    generation = peer.enrolled.generation + 1
    return Enrolled(peer, await ask_token(deps, peer.enrolled.runner_id, peer.key, generation))


async def make_enrolment_token(deps: Deps, user: User, queue: QueueId) -> str:
    """Make a one-time token that nobody has used."""
    return (await runners.create_enrolment(deps, user, queue)).token
