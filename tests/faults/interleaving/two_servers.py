"""Two servers on one PostgreSQL database, and the installs and runners that a scenario needs."""

from collections.abc import Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, cast
from unittest.mock import patch

import psycopg

from exclave.base.ids import Ids, SeededRandomness
from exclave.control.background.sweeper import Sweeper
from exclave.control.deps import Deps, ServerDeps
from exclave.domain.identity import OrgId, QueueId, QueueKind, RunnerId, RunnerIdentity, User
from exclave.domain.timings import Timings
from exclave.storage import installs, queues
from exclave.storage.blobs.memory import MemoryBlobs
from exclave.storage.engine.database import Tx
from exclave.storage.engine.dialects.postgres import PostgresDialect
from exclave.wire.runner import Offer, PollReply, ResultReply
from exclave.wire.workflows import NewStep, WorkflowReply
from tests.faults.interleaving.apps import add_runner
from tests.faults.interleaving.hooks import Hooks, Rewrite
from tests.faults.interleaving.scheduler import Scheduler
from tests.support.databases import open_database
from tests.support.world import FakeRunner, ManualClock, make_deps, make_org, run_workflow

TIMINGS = Timings(
    offer_s=10,
    deadman_read_only_s=10,
    deadman_mutating_s=10,
    lost_read_only_s=20,
    lost_mutating_s=20,
    start_grace_s=0,
    approval_s=60,
)
_SESSIONS = 4
_PREPARE = """
ALTER DATABASE {name} SET deadlock_timeout = '20ms';
CREATE SCHEMA watched;
CREATE TABLE watched.violations (said text NOT NULL);
CREATE FUNCTION watched.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF OLD.state = ANY (TG_ARGV) AND NEW.state <> OLD.state THEN
    INSERT INTO watched.violations
    VALUES (TG_TABLE_NAME || ' ' || OLD.id || ' was ' || OLD.state || ' and became ' || NEW.state);
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER final_executions BEFORE UPDATE ON executions FOR EACH ROW
  EXECUTE FUNCTION watched.refuse_change('ended');
CREATE TRIGGER final_jobs BEFORE UPDATE ON jobs FOR EACH ROW
  EXECUTE FUNCTION watched.refuse_change('succeeded', 'failed', 'cancelled', 'lost');
"""
_CLOSE_ALL = """
UPDATE executions SET state = 'ended' WHERE state <> 'ended';
UPDATE jobs SET state = 'cancelled' WHERE state IN ('queued', 'offered', 'running');
UPDATE steps SET state = 'cancelled', due_at = NULL WHERE state IN ('pending', 'active');
UPDATE workflows SET state = 'cancelled' WHERE state = 'running';
DELETE FROM schedules;
DELETE FROM oci_uploads;
DELETE FROM watched.violations;
"""


@dataclass(frozen=True)
class TwoServers:
    """What stays the same for many scenarios."""

    servers: tuple[ServerDeps, ServerDeps]
    clock: ManualClock
    user: User
    scheduler: Scheduler
    database: "psycopg.Connection[tuple[Any, ...]]"

    async def begin_scenario(self, seed: int) -> "Scenario":
        """Make a new install with two runners, one at each server."""
        self.database.execute(_CLOSE_ALL)
        random = Random(seed)
        one, two = (
            replace(server, ids=Ids(self.clock, SeededRandomness(random.getrandbits(32))))
            for server in random.sample(self.servers, 2)
        )
        queue, names = QueueId(f"ins_{seed:026d}"), ("first", "second")
        made = [RunnerId(f"run_{seed:025d}{number}") for number, _ in enumerate(names)]
        await one.db.write(lambda tx: _add_install(tx, self.user.org, queue, made))
        peers = [
            enrol_fake_runner(
                server, RunnerIdentity(self.user.org, runner, queue, QueueKind.INSTALL, name)
            )
            for server, runner, name in zip((one, two), made, names, strict=True)
        ]
        return Scenario(self, random, queue, one, two, peers[0], peers[1])


@dataclass
class Scenario:
    """One install and two runners: `first` talks to server `one`, `second` to server `two`."""

    pair: TwoServers
    random: Random
    queue: QueueId
    one: ServerDeps
    two: ServerDeps
    first: FakeRunner
    second: FakeRunner
    sweepers: list[Sweeper] = field(default_factory=list)
    handed_in: str = ""
    """The execution whose result is handed in."""

    @property
    def user(self) -> User:
        """Who asks for everything."""
        return self.pair.user

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.pair.clock.advance(seconds)

    async def make(self, *steps: NewStep) -> WorkflowReply:
        """Create a workflow."""
        return await run_workflow(self.one, self.user, self.queue, *steps)

    async def listen(self) -> None:
        """Let a sweeper of each server begin to listen."""
        self.sweepers = [Sweeper(self.one), Sweeper(self.two)]
        for sweeper in self.sweepers:
            await self.sweep(sweeper)

    async def sweep(self, sweeper: Sweeper) -> None:
        """Give up what was silent for too long, and withdraw old offers."""
        await sweeper.sweep()

    async def offer(self) -> Offer:
        """Offer the first runner its work."""
        return (await self.first.poll()).offers[0]

    async def start(self) -> Offer:
        """Let the first runner start its work."""
        offer = await self.offer()
        await self.first.start(offer.execution_id, offer.epoch)
        return offer

    def hand_in(self, offer: Offer) -> Coroutine[Any, Any, ResultReply]:
        """Let the first runner hand in a good result."""
        self.handed_in = offer.execution_id
        return self.first.hand_in(offer.execution_id, offer.epoch)

    def poll_again(self, server: Deps, *alive: Offer) -> Coroutine[Any, Any, PollReply]:
        """Let the first runner send its next poll while an earlier request is under way."""
        again = self.of(self.first, server)
        again.no, again.polls = again.no + 1, again.polls + 1
        again.alive = [offer.execution_id for offer in alive]
        return again.poll()

    def of(self, peer: FakeRunner, server: Deps) -> FakeRunner:
        """The same runner talking to a server, without memory of what it has."""
        return replace(peer, deps=server, alive=[])

    def any_server(self) -> Deps:
        """Choose a server."""
        return self.random.choice((self.one, self.two))


def enrol_fake_runner(server: Deps, who: RunnerIdentity) -> FakeRunner:
    """Make a runner that is authenticated already."""
    return FakeRunner(server, cast("Any", None), cast("Any", None), who)


def _add_install(tx: Tx, org: OrgId, queue: QueueId, made: list[RunnerId]) -> None:
    queues.add_queue(tx, org, queue, QueueKind.INSTALL)
    installs.add_install(tx, org, queue, queue, {})
    for runner in made:
        add_runner(tx, org, queue, QueueKind.INSTALL, runner)


@contextmanager
def open_servers(rewrite: Rewrite | None = None) -> Iterator["_Opening"]:
    """Open two servers on a fresh database whose transactions take turns."""
    with ExitStack() as undo:
        undo.enter_context(patch.object(PostgresDialect, "has_clock", False))
        url = undo.enter_context(open_database("postgres"))
        address = url.replace("+psycopg", "")
        database = undo.enter_context(psycopg.connect(address, autocommit=True))
        database.execute(_PREPARE.format(name=address.rpartition("/")[2]))
        undo.callback(database.execute, "DROP SCHEMA watched CASCADE")
        yield _Opening(url, database, rewrite, undo)


@dataclass(frozen=True)
class _Opening:
    """A database for scenarios; the servers live on the loop that asks for them."""

    url: str
    database: "psycopg.Connection[tuple[Any, ...]]"
    rewrite: Rewrite | None
    undo: ExitStack

    async def start(self) -> TwoServers:
        """Start the servers and connect them, so that no scenario waits for that."""
        clock = ManualClock()
        scheduler, blobs = Scheduler(self.database), MemoryBlobs()
        one, two = (
            make_deps(
                clock,
                url=self.url,
                seed=number,
                name=f"srv-{number}",
                inline=False,
                timings=TIMINGS,
                blobs=blobs,
            )
            for number in (1, 2)
        )
        engines = [server.db._write_engine for server in (one, two)]
        self.undo.enter_context(Hooks(scheduler, self.rewrite).attached(engines))
        for server in (one, two):
            self.undo.callback(server.db.close)
            for sessions in (server.db._writing, server.db._reading):
                sessions.close()
                sessions._free.extend(sessions._connect() for _ in range(_SESSIONS))
        return TwoServers((one, two), clock, await make_org(one), scheduler, self.database)
