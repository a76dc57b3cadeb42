"""Short scenarios in which two servers do things to the same rows at the same time.

Each sets the scene, and returns who acts then: by name, all at once.
"""

from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

from exclave.control.background.timers import fire_due
from exclave.control.dispatch import runners
from exclave.control.installs import installs
from exclave.control.installs.scheduler import fire_schedules
from exclave.control.installs.workflow_requests import start_work
from exclave.control.registry import uploads as registry_uploads
from exclave.control.registry.gc import GRACE, collect_org
from exclave.control.workflows import jobs, workflows
from exclave.domain.identity import InstallId, QueueKind, RunnerId, RunnerIdentity
from exclave.domain.installs import AppInstall
from exclave.domain.jobs import JobId
from exclave.domain.registry import RegistryScope
from exclave.domain.workflows import WorkflowId
from exclave.storage import app_installs, builds
from exclave.storage import installs as stored_installs
from exclave.storage.engine.database import Tx
from exclave.wire.installs import StartWork, WorkflowKind
from exclave.wire.jobs import JobKind, OutcomeState, Reason
from exclave.wire.runner import Outcome
from exclave.wire.workflows import Approve, Deny, NewStep, StepKind
from tests.faults.interleaving.apps import add_app, add_schedule
from tests.faults.interleaving.two_servers import TIMINGS, Scenario, enrol_fake_runner
from tests.support.world import gate, job

Actors = dict[str, Coroutine[Any, Any, Any]]
Play = Callable[[Scenario], Coroutine[Any, Any, Actors]]
LANE = ["component:a"]
_FAILED = Outcome(state=OutcomeState.FAILED, reason=Reason.EXIT_CODE, exit_code=1)
_LATE_OFFER = TIMINGS.offer_s + 1
_LATE_SIGN = TIMINGS.lost_mutating_s + 1


def _work(scenario: Scenario, *needs: str) -> NewStep:
    return job("work", *needs, lanes=LANE, mutating=scenario.random.random() < 0.7)


async def start_and_withdraw(scenario: Scenario) -> Actors:
    """A runner starts an offer while the other server's sweeper finds it too old."""
    await scenario.make(_work(scenario))
    offer = await scenario.offer()
    await scenario.listen()
    scenario.advance(_LATE_OFFER)
    return {
        "start": scenario.first.start(offer.execution_id, offer.epoch),
        "sweep": scenario.sweep(scenario.sweepers[1]),
        "poll": scenario.second.poll(),
    }


async def start_and_poll_again(scenario: Scenario) -> Actors:
    """A runner's start and its next poll, which does not know of the offer, cross each other."""
    await scenario.make(_work(scenario))
    offer = await scenario.offer()
    return {
        "start": scenario.first.start(offer.execution_id, offer.epoch),
        "poll": scenario.poll_again(scenario.two),
        "other": scenario.second.poll(),
    }


async def renew_and_silence(scenario: Scenario) -> Actors:
    """A renewal arrives at the moment at which the sweepers give the work up."""
    await scenario.make(_work(scenario))
    await scenario.listen()
    offer = await scenario.start()
    scenario.advance(_LATE_SIGN)
    return {
        "renew": scenario.first.renew({offer.execution_id: offer.epoch}),
        "sweep-1": scenario.sweep(scenario.sweepers[0]),
        "sweep-2": scenario.sweep(scenario.sweepers[1]),
    }


async def result_and_silence(scenario: Scenario) -> Actors:
    """A result arrives at the moment at which the work is given up or declared lost."""
    await scenario.make(_work(scenario))
    await scenario.listen()
    offer = await scenario.start()
    scenario.advance(_LATE_SIGN)
    actors: Actors = {
        "result": scenario.hand_in(offer),
        "sweep": scenario.sweep(scenario.sweepers[1]),
    }
    if scenario.random.random() < 0.5:
        found = await _find_job(scenario)
        again = scenario.of(scenario.first, scenario.two)
        actors["again"] = again.hand_in(offer.execution_id, offer.epoch)
        actors["lost"] = jobs.declare_lost(scenario.two, scenario.user, found, "burned")
    return actors


async def cancel_and_start(scenario: Scenario) -> Actors:
    """A job is cancelled while its runner starts it and a sweeper withdraws it."""
    flow = await scenario.make(_work(scenario))
    offer = await scenario.offer()
    await scenario.listen()
    scenario.advance(_LATE_OFFER)
    return {
        "cancel": await _choose_cancel(scenario, flow.id),
        "start": scenario.first.start(offer.execution_id, offer.epoch),
        "sweep": scenario.sweep(scenario.sweepers[1]),
    }


async def cancel_and_claim(scenario: Scenario) -> Actors:
    """A queued job is cancelled while both runners ask for work."""
    flow = await scenario.make(_work(scenario))
    return {
        "cancel": await _choose_cancel(scenario, flow.id),
        "poll-1": scenario.first.poll(),
        "poll-2": scenario.second.poll(),
    }


async def revoke_and_start(scenario: Scenario) -> Actors:
    """A runner is revoked while it starts its work and asks for more."""
    await scenario.make(_work(scenario), job("more"))
    offer = (await scenario.first.poll(free=1)).offers[0]
    runner = RunnerId(scenario.first.who.runner)
    return {
        "revoke": runners.revoke_runner(scenario.two, scenario.user, runner, "stolen"),
        "start": scenario.first.start(offer.execution_id, offer.epoch),
        "poll": scenario.poll_again(scenario.one, offer),
    }


async def timers(scenario: Scenario) -> Actors:
    """Both servers ring the same timer, and somebody cancels."""
    timer = NewStep(name="wait", kind=StepKind.TIMER, delay_s=1.0)
    flow = await scenario.make(timer, _work(scenario, "wait"))
    scenario.advance(2)
    actors: Actors = {"ring-1": fire_due(scenario.one), "ring-2": fire_due(scenario.two)}
    if scenario.random.random() < 0.3:
        actors["cancel"] = workflows.cancel_workflow(
            scenario.two, scenario.user, WorkflowId(flow.id)
        )
    return actors


async def gates(scenario: Scenario) -> Actors:
    """A gate is approved, denied and expires at once."""
    flow = WorkflowId(
        (
            await scenario.make(
                gate("ask"),
                _work(scenario, "ask"),
            )
        ).id
    )
    shown = await workflows.show_workflow(scenario.one, scenario.user, flow)
    digest = next(step.digest for step in shown.steps if step.name == "ask")
    approve, deny = Approve(digest=digest), Deny(digest=digest)
    actors: Actors = {
        "approve": workflows.approve_step(scenario.one, scenario.user, flow, "ask", approve),
        "deny": workflows.deny_step(scenario.two, scenario.user, flow, "ask", deny),
    }
    if scenario.random.random() < 0.7:
        scenario.advance(TIMINGS.approval_s + 1)
        actors |= {"expire-1": fire_due(scenario.one), "expire-2": fire_due(scenario.two)}
    return actors


async def lanes(scenario: Scenario) -> Actors:
    """Two runners ask for work on lanes that exclude each other, while more work comes."""
    for lane in ("component:a", "component:b", "sandbox"):
        await scenario.make(job("work", lanes=[lane], mutating=scenario.random.random() < 0.8))
    await scenario.make(job("read", lanes=["component:a"]), job("look", lanes=["component:b"]))
    offer = (await scenario.first.poll(free=1)).offers[0]
    await scenario.first.start(offer.execution_id, offer.epoch)
    return {
        "result": scenario.of(scenario.first, scenario.two).hand_in(
            offer.execution_id, offer.epoch
        ),
        "poll-1": scenario.poll_again(scenario.one, offer),
        "poll-2": scenario.second.poll(),
        "create": scenario.make(job("late", lanes=["component:a"], mutating=True)),
    }


async def two_sweepers(scenario: Scenario) -> Actors:
    """Both servers sweep offers and silent work while runners come back."""
    await scenario.listen()
    await scenario.make(
        job("silent", lanes=["component:a"], mutating=True),
        job("quiet"),
        job("offered", lanes=["component:b"], mutating=True),
    )
    offers = (await scenario.first.poll(free=3)).offers
    for offer in offers[:2]:
        await scenario.first.start(offer.execution_id, offer.epoch)
    scenario.advance(_LATE_SIGN)
    back = scenario.random.choice(offers)
    known = {offer.execution_id: offer.epoch for offer in offers[:2]}
    return {
        "sweep-1": scenario.sweep(scenario.sweepers[0]),
        "sweep-2": scenario.sweep(scenario.sweepers[1]),
        "back": _come_back(scenario, back.execution_id, back.epoch),
        "renew": scenario.first.renew(known),
        "poll": scenario.second.poll(),
    }


async def retry_and_end(scenario: Scenario) -> Actors:
    """A failed step is tried again by two people at once, while another one's result comes."""
    flow = WorkflowId((await scenario.make(job("fails"), job("goes-on"), job("after", "fails"))).id)
    offers = (await scenario.first.poll(free=2)).offers
    for offer in offers:
        await scenario.first.start(offer.execution_id, offer.epoch)
    await scenario.first.hand_in(offers[0].execution_id, offers[0].epoch, _FAILED)
    shown = await workflows.show_workflow(scenario.one, scenario.user, flow)
    failed = next(step.name for step in shown.steps if step.state == "failed")
    return {
        "retry-1": workflows.retry_step(scenario.one, scenario.user, flow, failed),
        "retry-2": workflows.retry_step(scenario.two, scenario.user, flow, failed),
        "result": scenario.hand_in(offers[1]),
        "poll": scenario.second.poll(),
    }


async def release_lane(scenario: Scenario) -> Actors:
    """A lane that needs a look is released twice while runners ask for work on it."""
    await scenario.listen()
    await scenario.make(job("lost", lanes=LANE, mutating=True))
    await scenario.start()
    scenario.advance(_LATE_SIGN)
    await scenario.sweep(scenario.sweepers[0])
    await scenario.make(job("next", lanes=LANE, mutating=True))
    install = InstallId(scenario.queue)
    return {
        "release-1": installs.release_lane(scenario.one, scenario.user, install, LANE[0], "looked"),
        "release-2": installs.release_lane(scenario.two, scenario.user, install, LANE[0], "looked"),
        "poll-1": scenario.of(scenario.first, scenario.one).restarted().poll(),
        "poll-2": scenario.second.poll(),
    }


async def ticks(scenario: Scenario) -> Actors:
    """Both servers find the same tick of a schedule due."""
    one, org = scenario.one, scenario.user.org
    await one.db.write(lambda tx: add_app(tx, one, org, scenario.queue))
    await one.db.write(lambda tx: add_schedule(tx, one, org, scenario.queue))
    return {"tick-1": fire_schedules(scenario.one), "tick-2": fire_schedules(scenario.two)}


async def builds_and_waits(scenario: Scenario) -> Actors:
    """An install begins to wait for two builds while one succeeds and the other is cancelled."""
    one, org = scenario.one, scenario.user.org
    app = await one.db.write(lambda tx: add_app(tx, one, org, scenario.queue))
    who = RunnerIdentity(org, app.builder, app.build_queue, QueueKind.BUILD, "builder")
    builder = enrol_fake_runner(one, who)
    builder.kinds = (JobKind.BUILD,)
    offer = (await builder.poll(free=1)).offers[0]
    await builder.start(offer.execution_id, offer.epoch)
    rows = await one.db.read(lambda tx: [builds.find_build(tx, org, build) for build in app.builds])
    queued = await _find_job(scenario, app.build_queue, "queued")
    flow = next(row.workflow_id for row in rows if row is not None and row.workflow_id)
    install, wish = InstallId(scenario.queue), StartWork(kind=WorkflowKind.REPROVISION)
    if scenario.random.random() < 0.5:
        await start_work(scenario.any_server(), scenario.user, install, wish)
    cancel: Coroutine[Any, Any, Any]
    if scenario.random.random() < 0.5:
        cancel = workflows.cancel_workflow(scenario.two, scenario.user, flow)
    else:
        cancel = jobs.cancel_job(scenario.two, scenario.user, queued)
    return {
        "begin": start_work(scenario.any_server(), scenario.user, install, wish),
        "cancel": cancel,
        "result": builder.hand_in(offer.execution_id, offer.epoch),
    }


async def uploads(scenario: Scenario) -> Actors:
    """An old upload goes on while the collector of the other server ends old uploads."""
    scope = RegistryScope(scenario.user.org, "test", ("*",), push=True)
    name = f"{scenario.user.org}/apps/one"
    begun = await registry_uploads.begin_upload(scenario.one, scope, name)
    await registry_uploads.append(scenario.one, scope, name, begun.id, Body(b"first"))
    scenario.advance(GRACE.total_seconds() + 1)
    actors: Actors = {
        "append": registry_uploads.append(scenario.one, scope, name, begun.id, Body(b"second")),
        "collect": collect_org(scenario.two, scenario.user.org, GRACE),
    }
    if scenario.random.random() < 0.3:
        actors["cancel"] = registry_uploads.cancel_upload(scenario.two, scope, name, begun.id)
    return actors


async def installs_locked(scenario: Scenario) -> Actors:
    """Two servers change what they have read of an install under its lock."""
    one, org = scenario.one, scenario.user.org
    await one.db.write(lambda tx: add_app(tx, one, org, scenario.queue))

    def raise_version(tx: Tx) -> int:
        install = stored_installs.find_install(tx, org, scenario.queue, lock=True)
        assert isinstance(install, AppInstall)
        version = install.input_version + 1
        app_installs.set_input_version(tx, org, scenario.queue, version)
        return version

    return {
        "raise-1": scenario.one.db.write(raise_version),
        "raise-2": scenario.two.db.write(raise_version),
    }


async def keys(scenario: Scenario) -> Actors:
    """Two servers append a signing key at once."""
    return {
        "rotate-1": scenario.one.db.write(scenario.one.keys.rotate),
        "rotate-2": scenario.two.db.write(scenario.two.keys.rotate),
    }


class Body:
    """A piece of an upload."""

    cut = False
    announced = None

    def __init__(self, data: bytes) -> None:
        self._data = data

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Give all of it."""
        yield self._data


async def _choose_cancel(scenario: Scenario, flow: str) -> Coroutine[Any, Any, Any]:
    if scenario.random.random() < 0.5:
        return workflows.cancel_workflow(scenario.two, scenario.user, WorkflowId(flow))
    return jobs.cancel_job(scenario.two, scenario.user, await _find_job(scenario))


async def _find_job(
    scenario: Scenario, queue: str | None = None, state: str | None = None
) -> JobId:
    page = await jobs.list_jobs(
        scenario.one,
        scenario.user,
        cursor="",
        limit=1,
        queue=queue or scenario.queue,
        workflow=None,
        state=state,
    )
    return JobId(page.items[0].id)


async def _come_back(scenario: Scenario, execution: str, epoch: int) -> Any:
    """Start what was offered, or hand in what was started."""
    if execution in scenario.first.alive:
        return await scenario.first.hand_in(execution, epoch)
    return await scenario.first.start(execution, epoch)


SCENARIOS: tuple[Play, ...] = (
    start_and_withdraw, start_and_poll_again, renew_and_silence, result_and_silence,
    cancel_and_start, cancel_and_claim, revoke_and_start, timers, gates, lanes, two_sweepers,
    retry_and_end, release_lane, ticks, builds_and_waits, uploads, installs_locked, keys,
)  # fmt: skip
