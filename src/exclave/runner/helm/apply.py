"""Apply a planned release: exactly the approved content, then wait, clean up, verify."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from exclave.base.errors import Problem
from exclave.runner.commands import helm
from exclave.runner.helm.compare import CrdOwner, compare_release
from exclave.runner.helm.context import HelmContext
from exclave.runner.helm.failures import explain_helm
from exclave.runner.helm.hooks import explain_hook
from exclave.runner.helm.outputs import collect_outputs
from exclave.runner.helm.plan import make_plan_file, open_earlier, read_facts
from exclave.runner.helm.plan_meta import ReleasePlan, read_release_plan
from exclave.runner.helm.records import (
    EXECUTION_LABEL,
    PLAN_LABEL,
    QUEUE_LABEL,
    list_records,
)
from exclave.runner.helm.recovery import recover
from exclave.runner.helm.rendered import read_release
from exclave.runner.kube.api.objects import ObjectId
from exclave.runner.kube.changes.apply import Applier, find_stale
from exclave.runner.kube.changes.cleaning import clean
from exclave.runner.kube.changes.going_back import (
    describe_return,
    goes_back,
    make_mark,
    shorten,
)
from exclave.runner.kube.changes.known import DEFINITION
from exclave.runner.kube.changes.ownership import read_uid
from exclave.runner.kube.changes.parallel import run_all
from exclave.runner.kube.changes.plan_file import PlanFile, list_touched, read_plan_file
from exclave.runner.kube.changes.reading import place_objects
from exclave.runner.kube.changes.removal import RemovedObject, Remover, describe_leftovers
from exclave.runner.kube.changes.state import (
    KubeState,
    PlanMark,
    StateObject,
    finish,
    key_of,
    unite,
)
from exclave.runner.kube.health.watching import HealthWatch, list_watched, watch_rollout
from exclave.runner.kube.pull_secrets import list_pull_namespaces
from exclave.runner.kube.rollouts.downtime import check_downtime, count_endpoints
from exclave.runner.kube.rollouts.ready import needs_wait
from exclave.runner.kube.rollouts.waiting import RolloutWait, fail_rollout
from exclave.runner.outcomes import Stopped, WorkFailed
from exclave.runner.plans.sealed_plans import fetch_plan
from exclave.wire.jobs import OutcomeState, Reason
from exclave.wire.runner import Outcome
from exclave.wire.spec_fields import PlanRef

Note = Callable[[str, ObjectId], None]
"""Writes to the journal what happens to which object, before it happens."""

_MARGIN_S = 5
"""What is left of the timeout for storing the state."""
_PRUNE_S = 60
_PLAN_LABEL_CHARS = 40


@dataclass(frozen=True, slots=True)
class Approved:
    """The plan of an apply, verified."""

    plan: PlanFile
    release: ReleasePlan
    mark: PlanMark
    state: KubeState
    is_return: bool = False
    """Whether it is what was deployed before, after a rollout that failed."""
    kept_s: float = 0.0
    """How much of the job's time is for what comes after the rollout."""


async def open_fresh(job: HelmContext) -> Approved:
    """Fetch the approved plan; raise if anything is not as it was planned for."""
    approved = await _open_approved(job)
    await _check_fresh(job, approved)
    return approved


async def _open_approved(job: HelmContext) -> Approved:
    """Fetch the approved plan; raise if the cluster or the state is not as it was planned for."""
    data = await fetch_plan(job.context.job, job.sealer, job.spec.workspace, job.spec.plan)
    try:
        plan = read_plan_file(data)
        release = read_release_plan(plan)
    except ValueError as error:
        raise WorkFailed(Reason.PLAN_MISSING, f"the plan cannot be read: {error}") from error
    state = await job.read_state()
    if (plan.cluster, plan.serial, plan.lineage) != (state.cluster, state.serial, state.lineage):
        message = "the state of the part changed since the plan: plan again"
        raise WorkFailed(Reason.PLAN_STALE, message)
    mark = make_mark(job.spec.plan) or PlanMark("", "")
    return Approved(plan, release, mark, state, kept_s=job.spec.wait.kept_s)


async def apply_release(job: HelmContext, note: Note) -> Outcome:
    """Run an apply job of a deploy."""
    approved = await job.context.guard(open_fresh(job), name="the check of the plan")
    async with job.state.locked("apply"):
        try:
            final = await _apply(job, approved, note)
        except WorkFailed as failure:
            mark = approved.plan.fall_back
            if mark is None or not goes_back(failure, mark):
                raise
            raise await _go_back(job, mark, failure, note) from failure
    collecting = collect_outputs(job, approved.release, approved.plan.objects, final)
    outputs = await job.context.guard(collecting, name="the reading of the outputs")
    return Outcome(
        state=OutcomeState.SUCCEEDED,
        reason=Reason.COMPLETED,
        exit_code=0,
        outputs={"outputs": outputs, "sensitive_outputs": []},
    )


async def _go_back(job: HelmContext, mark: PlanMark, failure: WorkFailed, note: Note) -> WorkFailed:
    """Deploy what was deployed before; return the failure with what became of that."""
    job.context.log.system(failure.message)
    job.context.log.system(f"going back to the plan {shorten(mark.digest)}")
    try:
        earlier = await job.context.guard(_plan_return(job, mark), name="the plan to go back")
        await _apply(job, earlier, note)
    except WorkFailed as problem:
        return describe_return(failure, mark, problem.message)
    except Problem as problem:
        return describe_return(failure, mark, job.context.mask(problem.message))
    return describe_return(failure, mark)


async def _plan_return(job: HelmContext, mark: PlanMark) -> Approved:
    """Return the plan of what was deployed before, compared with the cluster as it is now."""
    facts = await read_facts(job)
    ref = PlanRef(execution_id=mark.execution, digest=mark.digest)
    rendering, release = await open_earlier(job, facts, ref)
    compared = await compare_release(job, facts.state, facts.records, rendering, release.crds)
    release = replace(release, crds=[wanted for wanted, _ in compared.crds])
    plan = make_plan_file(job, facts.state, compared, release)
    return Approved(plan, release, mark, facts.state, is_return=True)


async def _apply(job: HelmContext, approved: Approved, note: Note) -> KubeState:
    """Change the cluster step by step; every step that asks somebody observes a stop."""
    guard = job.context.guard
    state = await guard(_begin_state(job, approved), name="the storing of the state")
    objects = approved.plan.objects
    async with count_endpoints(job.client, job.context.clock, objects) as count_downtimes:
        await guard(_prepare(job, approved, note), name="the preparation")
        pulling = job.pull_secrets.write_all(_list_pulling(job, approved))
        later = await guard(pulling, name="the login of the registry")
        await _run_helm(job, approved)
        await guard(job.pull_secrets.write_all(later), name="the login of the registry")
        failure = await _wait_ready(job, approved)
        downtimes = count_downtimes()
        if not approved.is_return:
            failure = failure or await _watch_health(job, approved)
    if failure is None:
        await _prune(job, approved, note)
        await guard(_verify(job, approved), name="the check of the release")
    final = await _end_state(job, approved, state, failure)
    if failure is not None:
        raise failure
    is_refused = job.spec.wait.no_downtime and not approved.is_return
    check_downtime(downtimes, job.context.log.system, is_refused=is_refused)
    return final


async def _check_fresh(job: HelmContext, approved: Approved) -> None:
    """Raise if the release or an object that is changed moved since the plan."""
    planned, spec = approved.release, job.spec
    records = await list_records(job.client, planned.driver, spec.namespace, spec.release)
    revision = records[-1].revision if records else 0
    if revision != planned.revision:
        message = (
            f"the release is at revision {revision}, and the plan was made for {planned.revision}:"
            " plan again"
        )
        raise WorkFailed(Reason.PLAN_STALE, message)
    stale = await find_stale(job.client, approved.plan.changes)
    if stale:
        names = ", ".join(change.id.address for change in stale[:5])
        message = f"changed since the plan: {names}: plan again"
        raise WorkFailed(Reason.PLAN_STALE, message)


async def _begin_state(job: HelmContext, approved: Approved) -> KubeState:
    """Store the union of old and planned objects, so that a crash leaves a superset."""
    mark = approved.mark._replace(revision=approved.release.revision + 1)
    crds = [wanted.id for wanted in approved.release.crds]
    planned = [*crds, *list_touched(approved.plan)]
    state = unite(approved.state, planned, mark)
    made = tuple(dict.fromkeys([*state.namespaces_made, *approved.plan.namespaces]))
    pulled = tuple(dict.fromkeys([*state.pull_secrets, *_list_pulling(job, approved)]))
    return await job.state.write(replace(state, namespaces_made=made, pull_secrets=pulled))


def _list_pulling(job: HelmContext, approved: Approved) -> list[str]:
    """Return the namespaces whose pods need the login of the registry."""
    namespaces = list_pull_namespaces(approved.plan.objects, job.pull_secrets.name)
    return sorted({*namespaces, *(hook.pulls_in for hook in approved.release.hooks)} - {""})


async def _prepare(job: HelmContext, approved: Approved, note: Note) -> None:
    """Do what Helm cannot: recover, make namespaces and CRDs, remove what has to be replaced."""
    planned, spec = approved.release, job.spec
    if planned.recovery is not None:
        records = await list_records(job.client, planned.driver, spec.namespace, spec.release)
        job.context.log.system(planned.recovery.note)
        await recover(job.client, planned.driver, records, planned.recovery)
    applier = Applier(job.client, job.context.clock, CrdOwner(), note, job.context.deadline)
    await applier.make_namespaces(approved.plan.namespaces)
    changes = {change.id: change for change in approved.plan.changes}
    await applier.apply_all(planned.crds, changes)
    replaced = [
        RemovedObject(change.id, change.uid)
        for change in approved.plan.changes
        if change.action == "replace"
    ]
    remover = Remover(job.client, job.context.clock, note)
    left = await job.context.guard(
        remover.remove_all(replaced, until=job.context.deadline),
        name="the removal of what is replaced",
    )
    if left:
        raise WorkFailed(Reason.LEFTOVERS, f"cannot be replaced: {describe_leftovers(left)}")


async def _run_helm(job: HelmContext, approved: Approved) -> None:
    planned, spec, workspace = approved.release, job.spec, job.context.workspace
    chart, values = workspace.folder / "frozen.tgz", workspace.folder / "shown-values.json"
    workspace.write(chart, planned.chart)
    workspace.write(values, planned.values)
    argv = helm.upgrade(
        job.tool,
        spec.release,
        chart,
        spec.namespace,
        values=values,
        wait="legacy" if planned.waits_for_pods else "hookOnly",
        timeout_s=_left_s(job, approved.kept_s),
        labels=_write_labels(job, approved),
        take_ownership=planned.take_ownership,
    )
    printed = await job.run_helm("upgrade", argv, planned.driver)
    if printed.code != 0:
        failure = explain_helm("upgrade", printed, job.context.mask)
        raise await job.context.guard(
            explain_hook(job, planned.driver, failure), name="the inquiry about the hook"
        )


def _write_labels(job: HelmContext, approved: Approved) -> Mapping[str, str]:
    digest = approved.mark.digest.removeprefix("sha256:")[:_PLAN_LABEL_CHARS]
    return {
        EXECUTION_LABEL: job.context.job.uplink.execution_id,
        QUEUE_LABEL: job.queue,
        PLAN_LABEL: digest,
    }


def _left_s(job: HelmContext, kept_s: float) -> int:
    left = job.context.deadline - job.context.clock.monotonic() - kept_s
    return max(1, int(left) - _MARGIN_S)


async def _wait_ready(job: HelmContext, approved: Approved) -> WorkFailed | None:
    """Wait for the rollout; return the failure, so that the state can be stored before."""
    waiting = [wanted.id for wanted in approved.plan.objects if needs_wait(wanted.value)]
    rollout = RolloutWait(job.client, job.context.clock, job.context.log.system)
    until = job.context.deadline - _MARGIN_S - approved.kept_s
    unready = await job.context.guard(rollout.wait(waiting, until=until), name="the rollout")
    if not unready:
        return None
    for entry in unready:
        for line in entry.log:
            job.context.log.system(f"{entry.id.name}: {line}")
    return fail_rollout(unready)


async def _watch_health(job: HelmContext, approved: Approved) -> WorkFailed | None:
    """Watch the release if its deploy depends on its health; return the failure."""
    rules, say = job.spec.wait.health, job.context.log.system
    if rules is None or not rules.block:
        return None
    watched = list_watched(approved.plan.objects)
    watch = HealthWatch(job.client, job.context.clock, rules, watched, job.run_in_pod, say)
    return await job.context.guard(watch_rollout(watch, say), name="the health watch")


async def _prune(job: HelmContext, approved: Approved, note: Note) -> None:
    """Remove what no longer belongs to the release: Helm forgets what failed revisions made."""
    removed = [
        RemovedObject(change.id, change.uid)
        for change in approved.plan.changes
        if change.action == "delete"
    ]
    remover = Remover(job.client, job.context.clock, note)
    until = min(job.context.deadline, job.context.clock.monotonic() + _PRUNE_S)
    left = await job.context.guard(
        remover.remove_all(removed, until=until), name="the removal of old objects"
    )
    if left:
        message = f"not wanted any more, but still there: {describe_leftovers(left)}"
        raise WorkFailed(Reason.LEFTOVERS, message)


async def _verify(job: HelmContext, approved: Approved) -> None:
    """Raise if the record does not say what was approved."""
    planned, spec = approved.release, job.spec
    records = await list_records(job.client, planned.driver, spec.namespace, spec.release)
    last = records[-1] if records else None
    if last is None or last.status != "deployed":
        status = "there is no record" if last is None else f"it is {last.status}"
        raise WorkFailed(
            Reason.RUNNER_ERROR, f"helm ended, but the release is not deployed: {status}"
        )
    discovery = await job.client.discover()
    sources = read_release(last.release).objects
    placed = place_objects(sources, discovery, spec.namespace)
    recorded = {key_of(entry.id): clean(job.owner.mark(entry.value)) for entry in placed}
    wanted = {key_of(entry.id): clean(entry.value) for entry in approved.plan.objects}
    if recorded != wanted:
        different = sorted(
            "/".join(part for part in key if part)
            for key in recorded.keys() | wanted.keys()
            if recorded.get(key) != wanted.get(key)
        )
        message = f"the release differs from what was approved: {', '.join(different[:5])}"
        raise WorkFailed(Reason.RUNNER_ERROR, message)


async def _end_state(
    job: HelmContext, approved: Approved, state: KubeState, failure: WorkFailed | None
) -> KubeState:
    """Store the final state; if time runs out over it, why the rollout failed is not forgotten."""
    storing = _store_state(job, approved, state, is_healthy=failure is None)
    try:
        return await job.context.guard(storing, name="the storing of the state")
    except Stopped:
        if failure is not None and job.context.stop.reason is None:
            raise failure from None
        raise


async def _store_state(
    job: HelmContext, approved: Approved, state: KubeState, *, is_healthy: bool
) -> KubeState:
    """Store the objects of the release with their uids; a failed rollout keeps the union.

    Definitions that came with the chart are kept too, so that a teardown can tell what stays.
    """
    lives = await find_uids(job, [wanted.id for wanted in approved.plan.objects])
    objects = [
        StateObject(*key_of(wanted.id), lives.get(wanted.id, ""))
        for wanted in approved.plan.objects
    ]
    known = {entry.key for entry in objects}
    objects += [
        entry
        for entry in state.objects
        if entry.key not in known and (not is_healthy or entry.kind == DEFINITION)
    ]
    revision = approved.release.revision + 1
    final = replace(finish(state, objects, healthy=is_healthy), revision=revision)
    if is_healthy:
        pulling = _list_pulling(job, approved)
        await job.pull_secrets.remove_all(set(state.pull_secrets) - set(pulling))
        final = replace(final, pull_secrets=tuple(pulling))
    return await job.state.write(final)


async def find_uids(job: HelmContext, ids: Sequence[ObjectId]) -> dict[ObjectId, str]:
    """Return the uids of objects that exist."""

    async def find_uid(object_id: ObjectId) -> str:
        return read_uid(await job.client.get(object_id) or {})

    uids = await run_all(ids, find_uid)
    return {object_id: uid for object_id, uid in zip(ids, uids, strict=True) if uid}
