"""Applies an approved plan: checked against the cluster first, followed until all is ready."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

from exclave.base.errors import Problem
from exclave.runner.kube.access.journal import ClusterJournal
from exclave.runner.kube.api.objects import ObjectId
from exclave.runner.kube.changes.apply import Applier, find_stale
from exclave.runner.kube.changes.going_back import (
    describe_return,
    goes_back,
    make_mark,
    shorten,
)
from exclave.runner.kube.changes.model import WantedObject
from exclave.runner.kube.changes.plan_file import PlanFile, PlannedChange, list_touched
from exclave.runner.kube.changes.removal import RemovedObject, Remover
from exclave.runner.kube.changes.state import (
    KubeState,
    PlanMark,
    StateObject,
    finish,
    key_of,
    unite,
)
from exclave.runner.kube.health.watching import HealthWatch, list_watched, watch_rollout
from exclave.runner.kube.manifests.container_logs import copy_job_logs
from exclave.runner.kube.manifests.context import ManifestContext
from exclave.runner.kube.manifests.outputs import gather_outputs
from exclave.runner.kube.manifests.plan import make_plan_file, plan_objects
from exclave.runner.kube.manifests.sources import PlanSource, reopen_plan
from exclave.runner.kube.pull_secrets import list_pull_namespaces
from exclave.runner.kube.rollouts.downtime import check_downtime, count_endpoints
from exclave.runner.kube.rollouts.ready import needs_wait
from exclave.runner.kube.rollouts.waiting import RolloutWait, fail_rollout
from exclave.runner.outcomes import WorkFailed
from exclave.runner.states.journal_file import keep_journal
from exclave.wire.jobs import JsonValue, OutcomeState, Reason
from exclave.wire.runner import Outcome

_MOST_NAMED: Final = 5
_LAST_S: Final = 10.0
"""The end of a job's time, which is kept for explaining what is not ready."""
_PRUNE_S: Final = 60.0

NoteChange = Callable[[str, ObjectId], None]


async def check_plan(job: ManifestContext, plan: PlanFile) -> KubeState:
    """Return the state; raise if the plan does not fit it or the cluster any more."""
    state = await job.read_state()
    if plan.cluster != state.cluster:
        raise _stale("it was made for another cluster")
    if (plan.serial, plan.lineage) != (state.serial, state.lineage):
        raise _stale(f"it was made for the state {plan.serial}, and this is {state.serial}")
    moved = await find_stale(job.client, plan.changes)
    if moved:
        names = ", ".join(change.id.address for change in moved[:_MOST_NAMED])
        more = f" and {len(moved) - _MOST_NAMED} more" if len(moved) > _MOST_NAMED else ""
        raise _stale(f"somebody has changed {names}{more} since")
    return state


async def apply_plan(job: ManifestContext, plan: PlanFile) -> Outcome:
    """Apply objects, follow their rollout, prune what is gone, and return the outcome."""
    state = await check_plan(job, plan)
    async with job.state.locked("apply"), open_journal(job) as note:
        mark = make_mark(job.spec.plan) or PlanMark("", "")
        try:
            return await _apply(job, plan, state, note, mark)
        except WorkFailed as failure:
            if plan.fall_back is None or not goes_back(failure, plan.fall_back):
                raise
            raise await _go_back(job, plan.fall_back, failure, note) from failure


async def _go_back(
    job: ManifestContext, mark: PlanMark, failure: WorkFailed, note: NoteChange
) -> WorkFailed:
    """Apply what was deployed before; return the failure with what became of that."""
    context = job.context
    context.log.system(failure.message)
    context.log.system(f"going back to the plan {shorten(mark.digest)}")
    try:
        earlier = await reopen_plan(job, mark.execution, mark.digest)
        state = await job.read_state()
        source = PlanSource(earlier.source, earlier.objects)
        plan = make_plan_file(job, await plan_objects(job, source, state))
        await _apply(job, plan, state, note, mark, is_return=True)
    except WorkFailed as problem:
        return describe_return(failure, mark, problem.message)
    except Problem as problem:
        return describe_return(failure, mark, context.mask(problem.message))
    return describe_return(failure, mark)


async def _apply(
    job: ManifestContext,
    plan: PlanFile,
    state: KubeState,
    note: NoteChange,
    mark: PlanMark,
    *,
    is_return: bool = False,
) -> Outcome:
    context = job.context
    made = tuple(dict.fromkeys((*state.namespaces_made, *plan.namespaces)))
    united = unite(state, list_touched(plan), mark)
    pulling = list_pull_namespaces(plan.objects, job.pull_secrets.name)
    pulled = tuple(dict.fromkeys((*state.pull_secrets, *pulling)))
    state = await job.state.write(replace(united, namespaces_made=made, pull_secrets=pulled))
    applier = Applier(job.client, context.clock, job.owner, note, until=context.deadline - _LAST_S)
    async with count_endpoints(job.client, context.clock, plan.objects) as downtimes:
        await applier.make_namespaces(plan.namespaces)
        later = await job.pull_secrets.write_all(pulling)
        await applier.apply_all(plan.objects, {change.id: change for change in plan.changes})
        await job.pull_secrets.write_all(later)
        await _wait_ready(job, plan.objects, 0.0 if is_return else job.spec.wait.kept_s)
        lowest = downtimes()
        if not is_return:
            await _watch_health(job, plan.objects)
    is_refused = job.spec.wait.no_downtime and not is_return
    check_downtime(lowest, context.log.system, is_refused=is_refused)
    leftovers = await _prune(job, plan, note)
    kept = [change for change in plan.changes if change.action == "keep"]
    objects = [
        *_list_applied(plan, applier),
        *(_to_state(change) for change in (*leftovers, *kept)),
    ]
    await job.pull_secrets.remove_all(set(pulled) - set(pulling))
    ended = replace(finish(state, objects, healthy=True), pull_secrets=tuple(pulling))
    state = await job.state.write(ended)
    return _succeed(state, plan, await gather_outputs(job, plan.objects))


async def _wait_ready(job: ManifestContext, objects: Sequence[WantedObject], kept_s: float) -> None:
    context = job.context
    waited = [entry.id for entry in objects if needs_wait(entry.value)]
    wait = RolloutWait(job.client, context.clock, context.log.system)
    unready = await wait.wait(waited, until=context.deadline - _LAST_S - kept_s)
    await copy_job_logs(job, objects)
    if not unready:
        return
    for entry in unready:
        for line in entry.log:
            context.log.system(f"{entry.id.name}: {line}")
    raise fail_rollout(unready)


async def _watch_health(job: ManifestContext, objects: Sequence[WantedObject]) -> None:
    """Watch the part if its deploy depends on its health; raise if it does not stay healthy."""
    rules, say = job.spec.wait.health, job.context.log.system
    if rules is None or not rules.block:
        return
    watched = list_watched(objects)
    watch = HealthWatch(job.client, job.context.clock, rules, watched, job.run_in_pod, say)
    failure = await watch_rollout(watch, say)
    if failure is not None:
        raise failure


async def _prune(job: ManifestContext, plan: PlanFile, note: NoteChange) -> list[PlannedChange]:
    """Remove what is no longer wanted; return what does not go away yet."""
    clock = job.context.clock
    doomed = [change for change in plan.changes if change.action == "delete"]
    remover = Remover(job.client, clock, note)
    until = min(clock.monotonic() + _PRUNE_S, job.context.deadline - _LAST_S)
    entries = [RemovedObject(change.id, change.uid) for change in doomed]
    leftovers = await remover.remove_all(entries, until=until)
    for leftover in leftovers:
        job.context.log.system(f"warning: {leftover.id.address} {leftover.text}")
    left = {leftover.id for leftover in leftovers}
    return [change for change in doomed if change.id in left]


@asynccontextmanager
async def open_journal(job: ManifestContext) -> AsyncIterator[NoteChange]:
    """Keep a journal of every change, synced before the change is made."""
    async with keep_journal(job.context, job.spec.workspace, ClusterJournal) as journal:

        def note(action: str, object_id: ObjectId) -> None:
            journal.note_object(action, object_id)
            job.context.log.system(f"{action} {object_id.address}")

        yield note


def _list_applied(plan: PlanFile, applier: Applier) -> list[StateObject]:
    uids = {change.id: change.uid for change in plan.changes}
    return [
        StateObject(*key_of(entry.id), applier.find_uid(entry.id) or uids.get(entry.id, ""))
        for entry in plan.objects
    ]


def _to_state(change: PlannedChange) -> StateObject:
    return StateObject(*key_of(change.id), change.uid)


def _succeed(state: KubeState, plan: PlanFile, outputs: dict[str, JsonValue]) -> Outcome:
    counts = {
        name: sum(change.action == action for change in plan.changes)
        for name, action in _SUMMARY.items()
    }
    reported: dict[str, JsonValue] = {
        "outputs": outputs,
        "sensitive_outputs": [],
        "serial": state.serial,
        "lineage": state.lineage,
        "summary": dict(counts),
    }
    return Outcome(
        state=OutcomeState.SUCCEEDED, reason=Reason.COMPLETED, exit_code=0, outputs=reported
    )


def _stale(why: str) -> WorkFailed:
    return WorkFailed(Reason.PLAN_STALE, f"the plan is stale: {why}; plan again")


_SUMMARY: Final = {
    "add": "create",
    "change": "update",
    "replace": "replace",
    "destroy": "delete",
    "keep": "keep",
}
