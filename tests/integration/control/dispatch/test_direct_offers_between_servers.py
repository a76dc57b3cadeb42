"""A job that one server makes is offered to a poll that waits at another, in one commit."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest
from sqlalchemy import update

from exclave.base.clock import SystemClock
from exclave.control.background.tasks import PEERS
from exclave.control.deps import ServerDeps
from exclave.control.dispatch import polls, presence, runners
from exclave.control.workflows import workflows
from exclave.domain.identity import QueueId, User
from exclave.storage.engine.database import Tx
from exclave.storage.engine.listener import listen
from exclave.storage.tables.runners import runners as runners_table
from exclave.wire.jobs import JobKind
from exclave.wire.runner import PollReply
from exclave.wire.specs import ScriptSpec, ScriptStep
from exclave.wire.workflows import NewStep, WorkflowReply
from tests.support.databases import open_database
from tests.support.world import (
    FakeRunner,
    enrol_fake_runner,
    job,
    make_deps,
    make_install,
    make_org,
    run_workflow,
)


@dataclass(frozen=True)
class Pair:
    """Two servers on one database: work is made at one, and the runner polls at the other."""

    one: ServerDeps
    two: ServerDeps
    user: User
    queue: QueueId
    peer: FakeRunner

    async def hold_poll(
        self, free: int = 4, peer: FakeRunner | None = None
    ) -> "asyncio.Task[PollReply]":
        polling = asyncio.create_task((peer or self.peer).poll(free, hold=25.0))
        while (held := self.two.parked_polls.pop_oldest(self.user.org, self.queue)) is None:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.001)
        self.two.parked_polls.add(held)
        return polling

    async def make(self, *steps: NewStep) -> WorkflowReply:
        return await run_workflow(self.one, self.user, self.queue, *(steps or (job("work"),)))

    async def tell_state(self, flow: WorkflowReply) -> str:
        shown = await workflows.show_workflow(self.one, self.user, flow.id)  # type: ignore[arg-type]
        return str(shown.steps[0].job_state)


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    with open_database("postgres") as url:
        one = make_deps(SystemClock(), url=url, name="one", seed=1)
        two = make_deps(SystemClock(), url=url, name="two", seed=2)
        listening = [
            asyncio.create_task(listen(url, each.hub, each.db.name)) for each in (one, two)
        ]
        user = await make_org(one)
        queue = await make_install(one, user)
        peer = await enrol_fake_runner(two, user, queue)
        while not (one.hub.has_peers() and two.hub.has_peers()):
            for each in (one, two):
                await each.db.write(lambda tx: tx.wake(PEERS))
            await asyncio.sleep(0.01)
        yield Pair(one, two, user, queue, peer)
        for each in (one, two):
            each.hub.close()
        for task in listening:
            task.cancel()
        await asyncio.gather(*listening, return_exceptions=True)
        for each in (one, two):
            each.db.close()


@pytest.fixture
def never_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    def look(*args: object, **more: object) -> PollReply:
        raise AssertionError("the poll went to look for its job")

    monkeypatch.setattr(polls, "_look", look)


async def give_up(polling: "asyncio.Task[PollReply]") -> None:
    polling.cancel()
    await asyncio.gather(polling, return_exceptions=True)


@pytest.mark.usefixtures("never_looks")
@pytest.mark.parametrize("mutating", [False, True])
async def test_a_poll_at_another_server_is_answered_by_who_makes_the_job(
    pair: Pair, *, mutating: bool
) -> None:
    polling = await pair.hold_poll()
    lanes = ["component:db"] if mutating else []

    made = await pair.make(job("work", lanes=lanes, mutating=mutating))
    (offer,) = (await polling).offers

    assert made.steps[0].job_state == "offered"
    await pair.peer.start(offer.execution_id, offer.epoch)
    await pair.peer.hand_in(offer.execution_id, offer.epoch)
    assert await pair.tell_state(made) == "succeeded"


async def test_an_offer_too_big_to_be_told_is_found_by_the_poll(pair: Pair) -> None:
    polling = await pair.hold_poll()
    script = ScriptSpec(steps=[ScriptStep(name="long", script="# " + "x" * 20_000)])

    made = await pair.make(job("work", spec=script))
    (offer,) = (await polling).offers

    assert made.steps[0].job_state == "offered"
    assert len(offer.envelope) > 20_000
    await pair.peer.start(offer.execution_id, offer.epoch)


async def test_an_offer_that_got_lost_on_its_way_is_made_again_to_the_next_poll(pair: Pair) -> None:
    polling = await pair.hold_poll()
    await give_up(polling)
    made = await pair.make()
    assert made.steps[0].job_state == "offered"

    (offer,) = (await pair.peer.poll()).offers

    await pair.peer.start(offer.execution_id, offer.epoch)
    await pair.peer.hand_in(offer.execution_id, offer.epoch)
    assert await pair.tell_state(made) == "succeeded"


async def test_the_same_question_again_gets_the_offer_that_was_made_for_it(pair: Pair) -> None:
    polling = asyncio.create_task(pair.peer.poll(nonce="a-nonce-of-this-poll", hold=25.0))
    await asyncio.sleep(0.05)
    await give_up(polling)
    await pair.make()

    (first,) = (await pair.peer.poll(nonce="a-nonce-of-this-poll")).offers
    (again,) = (await pair.peer.poll(nonce="a-nonce-of-this-poll")).offers

    assert first == again


async def test_a_poll_is_answered_once(pair: Pair) -> None:
    polling = await pair.hold_poll(free=4)

    first, second = await pair.make(), await pair.make()

    assert len((await polling).offers) == 1
    assert await pair.tell_state(first) == "offered"
    assert await pair.tell_state(second) == "queued"


async def test_who_answers_for_a_poll_and_who_holds_it_do_not_both_answer(pair: Pair) -> None:
    polling = await pair.hold_poll()
    held = pair.two.parked_polls.pop_oldest(pair.user.org, pair.queue)
    assert held is not None
    first = await pair.make()
    pair.two.parked_polls.add(held)

    second = await run_workflow(pair.two, pair.user, pair.queue, job("work"))

    assert await pair.tell_state(first) == "offered"
    assert second.steps[0].job_state == "queued"
    assert len((await polling).offers) == 1


async def test_a_result_at_one_server_brings_the_next_job_to_a_poll_at_the_other(
    pair: Pair,
) -> None:
    await pair.make(job("first"), job("second", "first"))
    (offer,) = (await pair.peer.poll()).offers
    await pair.peer.start(offer.execution_id, offer.epoch)
    polling = await pair.hold_poll()

    await replace(pair.peer, deps=pair.one).hand_in(offer.execution_id, offer.epoch)

    (following,) = (await polling).offers
    assert following.epoch > offer.epoch


async def test_a_runner_without_room_is_offered_nothing(pair: Pair) -> None:
    polling = await pair.hold_poll(free=0)

    made = await pair.make()

    assert made.steps[0].job_state == "queued"
    await give_up(polling)


async def test_a_runner_that_cannot_do_it_is_offered_nothing(pair: Pair) -> None:
    limited = replace(pair.peer, kinds=(JobKind.SCRIPT,))
    polling = await pair.hold_poll(peer=limited)

    made = await pair.make(job("does-nothing"))

    assert made.steps[0].job_state == "queued"
    await give_up(polling)


async def test_a_runner_that_hung_up_is_offered_nothing(pair: Pair) -> None:
    polling = await pair.hold_poll()
    await give_up(polling)
    await presence.note_disconnect(pair.two, pair.peer.who, pair.peer.boot, pair.peer.no)

    made = await pair.make()

    assert made.steps[0].job_state == "queued"


async def test_a_revoked_runner_is_offered_nothing(pair: Pair) -> None:
    polling = await pair.hold_poll()
    await runners.revoke_runner(pair.one, pair.user, pair.peer.who.runner, "gone")

    made = await pair.make()

    assert made.steps[0].job_state == "queued"
    await give_up(polling)


@pytest.mark.parametrize(("late_s", "state"), [(10, "offered"), (60, "queued")])
async def test_a_runner_that_is_lost_is_offered_nothing(
    pair: Pair, late_s: int, state: str
) -> None:
    polling = await pair.hold_poll()
    await give_up(polling)

    def be_late(tx: Tx) -> None:
        due = tx.now - timedelta(seconds=late_s)
        tx.run(update(runners_table).values(due_at=due))

    await pair.two.db.write(be_late)

    made = await pair.make()

    assert made.steps[0].job_state == state


async def test_the_runner_of_another_org_is_not_touched(pair: Pair) -> None:
    polling = await pair.hold_poll()
    stranger = await make_org(pair.one, "other")
    queue = await make_install(pair.one, stranger)

    made = await run_workflow(pair.one, stranger, queue, job("work"))

    assert made.steps[0].job_state == "queued"
    assert not polling.done()
    await give_up(polling)


async def test_a_message_of_another_version_is_left_alone(pair: Pair) -> None:
    polling = await pair.hold_poll()

    def tell(tx: Tx) -> None:
        tx.broadcast("offer", '{"v": 2}')
        tx.broadcast("news", "of tomorrow")
        tx.wake(PEERS)

    await pair.one.db.write(tell)
    await asyncio.sleep(0.1)

    assert not polling.done()
    await give_up(polling)
