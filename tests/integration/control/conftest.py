"""A control plane on each database, with an org and an install."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from exclave.control.deps import Deps, ServerDeps
from exclave.domain.identity import QueueId, User
from tests.support.databases import NAMES, open_database
from tests.support.world import (
    FakeRunner,
    ManualClock,
    enrol_fake_runner,
    make_deps,
    make_install,
    make_org,
)


@dataclass(frozen=True)
class World:
    """One org with one install and one runner."""

    deps: Deps
    clock: ManualClock
    user: User
    queue: QueueId
    peer: FakeRunner


class DatabaseClock(ManualClock):
    """The clock of tests, also where the database has one of its own."""


@pytest.fixture(params=NAMES)
def deps(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServerDeps]:
    clock = ManualClock()
    with open_database(request.param) as url:
        made = make_deps(clock, url=url)
        monkeypatch.setattr(type(made.db.dialect), "has_clock", False)
        yield made
        made.db.close()


@pytest.fixture
async def user(deps: Deps) -> User:
    return await make_org(deps)


@pytest.fixture
async def world(deps: Deps, user: User) -> World:
    clock = deps.clock
    assert isinstance(clock, ManualClock)
    queue = await make_install(deps, user)
    return World(deps, clock, user, queue, await enrol_fake_runner(deps, user, queue))
