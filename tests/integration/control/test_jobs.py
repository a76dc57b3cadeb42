"""Leases, epochs, lanes: what a runner may do to a job, and when."""

import pytest

from exclave.base.errors import Conflict, NotFound, Unauthenticated
from exclave.control import installs, jobs, runners, workflows
from exclave.control.sweep import Sweeper
from exclave.domain.identity import InstallId, RunnerId
from exclave.domain.jobs import JobId, StaleRequest, Superseded
from exclave.wire.jobs import JobReply, OutcomeState, Reason
from exclave.wire.runner import Offer, Outcome
from exclave.wire.workflows import WorkflowReply
from tests.integration.control.conftest import World
from tests.world import job, make_install, make_org, make_peer, run_workflow

LANE = ["component:a"]
FAILED = Outcome(state=OutcomeState.FAILED, reason=Reason.EXIT_CODE, exit_code=1)
INTERRUPTED = Outcome(state=OutcomeState.INTERRUPTED, reason=Reason.RUNNER_RESTARTED)
CANCELLED = Outcome(state=OutcomeState.CANCELLED, reason=Reason.CANCELLED)


async def begin(world: World, *, mutating: bool = False) -> Offer:
    """Run a workflow of one job up to its start."""
    lanes = LANE if mutating else []
    await run_workflow(
        world.deps, world.user, world.queue, job("one", lanes=lanes, mutating=mutating)
    )
    offer = (await world.peer.poll()).offers[0]
    await world.peer.start(offer.execution_id, offer.epoch)
    return offer


async def look(world: World) -> JobReply:
    page = await jobs.list_jobs(
        world.deps, world.user, cursor="", limit=10, queue=None, workflow=None, state=None
    )
    return await jobs.show_job(world.deps, world.user, JobId(page.items[0].id))


async def look_at_flow(world: World) -> WorkflowReply:
    page = await workflows.list_workflows(
        world.deps, world.user, cursor="", limit=1, queue=None, state=None
    )
    return await workflows.show_workflow(world.deps, world.user, page.items[0].id)  # type: ignore[arg-type]


async def lane_states(world: World) -> dict[str, str]:
    shown = await installs.show_install(world.deps, world.user, InstallId(world.queue))
    return {lane.name: lane.state for lane in shown.lanes}


async def test_a_job_goes_from_queued_to_succeeded(world: World) -> None:
    offer = await begin(world)
    assert (await look(world)).state == "running"

    await world.peer.hand_in(offer.execution_id, offer.epoch)

    assert (await look(world)).state == "succeeded"
    assert (await look_at_flow(world)).state == "succeeded"


async def test_jobs_come_by_priority_and_then_oldest_first(world: World) -> None:
    await run_workflow(world.deps, world.user, world.queue, job("old"), job("urgent", priority=5))
    world.clock.advance(1)
    await run_workflow(world.deps, world.user, world.queue, job("young"))

    offers = (await world.peer.poll(free=3)).offers

    names = []
    for offer in offers:
        await world.peer.start(offer.execution_id, offer.epoch)
    page = await jobs.list_jobs(
        world.deps, world.user, cursor="", limit=9, queue=None, workflow=None, state=None
    )
    order = {e.id: j.step for j in page.items
             for e in (await jobs.show_job(world.deps, world.user, JobId(j.id))).executions}  # fmt: skip
    names = [order[offer.execution_id] for offer in offers]
    assert names == ["urgent", "old", "young"]


async def test_a_runner_gets_no_more_than_it_has_room_for(world: World) -> None:
    await run_workflow(world.deps, world.user, world.queue, *[job(f"j{n}") for n in range(5)])

    assert len((await world.peer.poll(free=2)).offers) == 2


async def test_a_lost_reply_is_answered_again_with_the_same_offers(world: World) -> None:
    await run_workflow(world.deps, world.user, world.queue, job("one"), job("two"))

    first = await world.peer.poll(free=1, nonce="a-lost-reply-0001")
    again = await world.peer.poll(free=1, nonce="a-lost-reply-0001")

    assert [o.envelope for o in first.offers] == [o.envelope for o in again.offers]


async def test_an_offer_that_was_never_heard_of_is_offered_again(world: World) -> None:
    await run_workflow(world.deps, world.user, world.queue, job("one", lanes=LANE, mutating=True))
    lost = (await world.peer.poll()).offers[0]

    offers = (await world.peer.poll()).offers

    assert [o.execution_id for o in offers] != [lost.execution_id]
    assert len(offers) == 1
    with pytest.raises(Superseded):
        await world.peer.start(lost.execution_id, lost.epoch)


async def test_work_on_one_lane_never_overlaps(world: World) -> None:
    for _ in range(2):
        await run_workflow(
            world.deps, world.user, world.queue,
            job("plan", lanes=LANE), job("other", lanes=["component:b"]),
        )  # fmt: skip

    offers = (await world.peer.poll(free=8)).offers

    assert len(offers) == 2


async def test_the_sandbox_lane_excludes_all_others(world: World) -> None:
    await run_workflow(world.deps, world.user, world.queue, job("all", lanes=["sandbox"]))
    await run_workflow(world.deps, world.user, world.queue, job("one", lanes=LANE))

    assert len((await world.peer.poll(free=8)).offers) == 1


async def test_asking_twice_for_leave_to_start_is_fine(world: World) -> None:
    offer = await begin(world)

    assert not (await world.peer.start(offer.execution_id, offer.epoch)).cancel


async def test_a_result_counts_once_and_may_be_repeated(world: World) -> None:
    offer = await begin(world)

    for _ in range(2):
        assert (await world.peer.hand_in(offer.execution_id, offer.epoch)).recorded
    with pytest.raises(Superseded):
        await world.peer.hand_in(offer.execution_id, offer.epoch, FAILED)

    assert (await look(world)).state == "succeeded"


async def test_a_result_under_another_epoch_is_refused(world: World) -> None:
    offer = await begin(world)

    with pytest.raises(Superseded):
        await world.peer.hand_in(offer.execution_id, offer.epoch + 1)

    assert (await look(world)).state == "running"


async def test_no_success_without_a_start(world: World) -> None:
    await run_workflow(world.deps, world.user, world.queue, job("one"))
    offer = (await world.peer.poll()).offers[0]

    with pytest.raises(Superseded):
        await world.peer.hand_in(offer.execution_id, offer.epoch)

    assert (await look(world)).state == "offered"


async def test_a_refused_envelope_fails_the_job_before_it_starts(world: World) -> None:
    await run_workflow(world.deps, world.user, world.queue, job("one"))
    offer = (await world.peer.poll()).offers[0]
    refused = Outcome(state=OutcomeState.FAILED, reason=Reason.ENVELOPE_REFUSED)

    await world.peer.hand_in(offer.execution_id, offer.epoch, refused)

    shown = await look(world)
    assert (shown.state, shown.reason) == ("failed", "envelope_refused")


async def test_a_restarted_runner_without_the_execution_proves_that_it_stopped(
    world: World,
) -> None:
    await begin(world, mutating=True)

    await world.peer.reborn().poll()

    shown = await look(world)
    assert (shown.state, shown.reason) == ("lost", "runner_stopped_it")
    assert await lane_states(world) == {"component:a": "needs_reconcile"}


async def test_a_renewal_sent_before_the_start_proves_nothing(world: World) -> None:
    await run_workflow(world.deps, world.user, world.queue, job("one", lanes=LANE, mutating=True))
    offer = (await world.peer.poll()).offers[0]
    world.peer.no += 1
    delayed = world.peer.no
    await world.peer.start(offer.execution_id, offer.epoch)
    world.peer.alive.clear()
    now, world.peer.no = world.peer.no, delayed - 1

    await world.peer.renew()
    world.peer.no = now

    assert (await look(world)).state == "running"


async def test_an_older_renewal_is_ignored(world: World) -> None:
    offer = await begin(world)
    await world.peer.renew({offer.execution_id: offer.epoch})
    world.peer.no -= 1

    with pytest.raises(StaleRequest):
        await world.peer.renew()


async def test_read_only_work_that_stopped_is_offered_three_times(world: World) -> None:
    await begin(world)
    peer = world.peer
    for _ in range(2):
        peer = peer.reborn()
        offer = (await peer.poll()).offers[0]
        await peer.start(offer.execution_id, offer.epoch)

    assert (await peer.reborn().poll()).offers == []

    shown = await look(world)
    assert (shown.state, shown.reason, shown.attempts) == ("lost", "too_many_attempts", 3)
    assert len(shown.executions) == 3


async def test_interrupted_changes_are_lost_and_block_their_lane_until_released(
    world: World,
) -> None:
    offer = await begin(world, mutating=True)
    await world.peer.hand_in(offer.execution_id, offer.epoch, INTERRUPTED)
    await run_workflow(world.deps, world.user, world.queue, job("next", lanes=LANE, mutating=True))

    assert (await world.peer.poll()).offers == []
    await installs.release_lane(
        world.deps, world.user, InstallId(world.queue), LANE[0], "checked by hand"
    )

    released = (await world.peer.poll()).offers[0]
    assert released.epoch > offer.epoch


async def test_a_lane_that_needs_no_look_is_not_released(world: World) -> None:
    await begin(world, mutating=True)

    with pytest.raises(Conflict, match="needs no release"):
        await installs.release_lane(
            world.deps, world.user, InstallId(world.queue), LANE[0], "in a hurry"
        )


async def test_a_zombie_changes_nothing_after_it_was_declared_lost(world: World) -> None:
    offer = await begin(world, mutating=True)
    await jobs.declare_lost(world.deps, world.user, JobId((await look(world)).id), "machine gone")

    verdicts = (await world.peer.renew({offer.execution_id: offer.epoch})).verdicts
    with pytest.raises(Superseded):
        await world.peer.hand_in(offer.execution_id, offer.epoch)

    assert verdicts == {offer.execution_id: "superseded"}
    assert (await look(world)).state == "lost"


async def test_silence_makes_read_only_work_available_after_a_minute(world: World) -> None:
    sweeper = Sweeper(world.deps)
    await begin(world)
    await sweep_for(world, sweeper, 59)
    assert (await look(world)).state == "running"

    await sweep_for(world, sweeper, 6)

    assert (await look(world)).state == "queued"


async def test_silence_loses_changes_after_fifteen_minutes(world: World) -> None:
    sweeper = Sweeper(world.deps)
    await sweeper.sweep()
    await begin(world, mutating=True)
    await sweep_for(world, sweeper, 890)
    assert (await look(world)).state == "running"

    await sweep_for(world, sweeper, 20)

    assert (await look(world)).state == "lost"


async def test_a_restarted_server_waits_longer_before_it_gives_up_on_changes(world: World) -> None:
    await begin(world, mutating=True)
    world.clock.advance(3600)
    sweeper = Sweeper(world.deps)

    await sweep_for(world, sweeper, 1190)
    assert (await look(world)).state == "running"
    await sweep_for(world, sweeper, 20)

    assert (await look(world)).state == "lost"


async def sweep_for(world: World, sweeper: Sweeper, seconds: int) -> None:
    for _ in range(0, seconds, 5):
        await sweeper.sweep()
        world.clock.advance(min(5, seconds))
    await sweeper.sweep()


async def test_an_offer_that_nobody_starts_goes_back(world: World) -> None:
    await run_workflow(world.deps, world.user, world.queue, job("one", lanes=LANE, mutating=True))
    await world.peer.poll()
    world.clock.advance(31)

    await Sweeper(world.deps).sweep()

    assert (await look(world)).state == "queued"
    assert await lane_states(world) == {"component:a": "free"}


async def test_a_queued_job_is_cancelled_at_once(world: World) -> None:
    await run_workflow(world.deps, world.user, world.queue, job("one"))

    shown = await jobs.cancel_job(world.deps, world.user, JobId((await look(world)).id))

    assert shown.state == "cancelled"
    assert (await look_at_flow(world)).state == "failed"


async def test_a_running_job_is_cancelled_by_its_runner(world: World) -> None:
    offer = await begin(world)
    await jobs.cancel_job(world.deps, world.user, JobId((await look(world)).id))

    told = (await world.peer.poll()).cancel
    again = (await world.peer.poll()).cancel
    verdicts = (await world.peer.renew({offer.execution_id: offer.epoch})).verdicts
    await world.peer.hand_in(offer.execution_id, offer.epoch, CANCELLED)

    assert (told, again) == ([offer.execution_id], [])
    assert verdicts == {offer.execution_id: "cancel"}
    assert (await look(world)).state == "cancelled"


async def test_an_offered_job_that_was_cancelled_is_not_worked_on(world: World) -> None:
    await run_workflow(world.deps, world.user, world.queue, job("one"))
    offer = (await world.peer.poll()).offers[0]
    await jobs.cancel_job(world.deps, world.user, JobId((await look(world)).id))

    reply = await world.peer.start(offer.execution_id, offer.epoch)

    assert reply.cancel


async def test_cancelled_read_only_work_is_not_offered_again(world: World) -> None:
    offer = await begin(world)
    await jobs.cancel_job(world.deps, world.user, JobId((await look(world)).id))

    await world.peer.hand_in(offer.execution_id, offer.epoch, INTERRUPTED)

    assert (await look(world)).state == "cancelled"


async def test_an_ended_job_cannot_be_cancelled(world: World) -> None:
    offer = await begin(world)
    await world.peer.hand_in(offer.execution_id, offer.epoch)

    with pytest.raises(Conflict, match="has ended"):
        await jobs.cancel_job(world.deps, world.user, JobId((await look(world)).id))


async def test_another_runner_reaches_neither_the_queue_nor_the_execution(world: World) -> None:
    offer = await begin(world)
    sibling = await make_peer(
        world.deps, world.user, await make_install(world.deps, world.user, "other"), "sibling"
    )
    stranger_org = await make_org(world.deps, "evil")
    stranger = await make_peer(
        world.deps, stranger_org, await make_install(world.deps, stranger_org), "stranger"
    )

    for peer in (sibling, stranger):
        assert (await peer.poll()).offers == []
        with pytest.raises(NotFound):
            await peer.start(offer.execution_id, offer.epoch)
        with pytest.raises(NotFound):
            await peer.hand_in(offer.execution_id, offer.epoch)
        peer.alive.clear()
        assert (await peer.renew({offer.execution_id: offer.epoch})).verdicts == {
            offer.execution_id: "superseded"
        }
    assert (await look(world)).state == "running"


async def test_two_runners_of_one_install_share_its_work(world: World) -> None:
    second = await make_peer(world.deps, world.user, world.queue, "second")
    await run_workflow(world.deps, world.user, world.queue, job("a", lanes=LANE, mutating=True))
    await run_workflow(world.deps, world.user, world.queue, job("b"))

    first = (await world.peer.poll(free=1)).offers
    other = (await second.poll(free=1)).offers

    assert len(first) == len(other) == 1
    assert first[0].execution_id != other[0].execution_id


async def test_a_revoked_runner_gets_nothing_any_more(world: World) -> None:
    await runners.revoke_runner(
        world.deps, world.user, RunnerId(world.peer.who.runner), "laptop stolen"
    )

    with pytest.raises(Unauthenticated):
        await world.peer.poll()
