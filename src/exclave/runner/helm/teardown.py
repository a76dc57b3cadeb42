"""Remove a release: what goes, what stays and why, and what does not go away."""

from collections.abc import Sequence
from dataclasses import replace

from exclave.base.json_values import JsonObject, list_or_empty, object_or_empty
from exclave.runner.commands import helm
from exclave.runner.helm.apply import Approved, Note, open_fresh
from exclave.runner.helm.compare import Compared, list_known
from exclave.runner.helm.context import HelmContext
from exclave.runner.helm.failures import explain_helm
from exclave.runner.helm.hooks import explain_hook, list_hook_objects
from exclave.runner.helm.plan import ReleaseFacts, hand_in, read_facts
from exclave.runner.helm.plan_meta import ReleasePlan
from exclave.runner.helm.records import list_records
from exclave.runner.helm.rendered import HOOK_ANNOTATION
from exclave.runner.kube.api.discovery import Resource
from exclave.runner.kube.api.lists import Selection
from exclave.runner.kube.api.objects import ObjectId, identify
from exclave.runner.kube.changes.describe import count_changes, describe_changes
from exclave.runner.kube.changes.ignoring import IgnoreRules
from exclave.runner.kube.changes.known import (
    DEFINITION,
    KEPT_DEFINITION,
    compare_known,
    find_known,
)
from exclave.runner.kube.changes.model import ObjectChange
from exclave.runner.kube.changes.namespaces import NamespaceRemover, name_namespace
from exclave.runner.kube.changes.ownership import read_annotation, read_uid
from exclave.runner.kube.changes.parallel import run_all
from exclave.runner.kube.changes.removal import (
    Leftover,
    RemovedObject,
    Remover,
    describe_leftovers,
)
from exclave.runner.kube.changes.state import (
    KubeState,
    PlanMark,
    StateObject,
    begin_removal,
    finish,
    key_of,
)
from exclave.runner.kube.rollouts.pods import write_selector
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import OutcomeState, Reason
from exclave.wire.plans import PlanDocument
from exclave.wire.runner import Outcome

_CLAIMS = Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", namespaced=True)
_MARGIN_S = 10


async def plan_teardown(job: HelmContext) -> Outcome:
    """Plan the removal of a release: every object of the state and of the records."""
    facts = await read_facts(job)
    known = list_known(facts.state, facts.records, job.spec.namespace)
    changes = await compare_known(job.client, known, (), job.owner)
    changes = [_note_definition(change) for change in changes]
    changes += await _compare_definitions(job, facts, changes)
    changes += await _compare_claims(job, changes)
    changes += await _compare_hooks(job, facts)
    compared = Compared((), changes, namespaces=_list_namespaces(job, facts))
    resources = describe_changes(
        changes, job.context.mask, module=job.spec.release, ignore=IgnoreRules(())
    )
    document = PlanDocument(
        destroy=True,
        tool="helm",
        resources=resources,
        summary=count_changes(resources),
        notes=_write_notes(job, facts, compared),
    )
    plan = ReleasePlan(
        release=job.spec.release,
        driver=facts.driver,
        revision=facts.revision,
        chart=b"",
        values=b"{}",
        recovery=facts.recovery,
    )
    return await hand_in(job, facts, compared, plan, document)


async def apply_teardown(job: HelmContext, note: Note) -> Outcome:
    """Remove what was approved, and verify that it is gone."""
    approved = await job.context.guard(open_fresh(job), name="the check of the plan")
    async with job.state.locked("teardown"):
        left = await _remove(job, approved, note)
    return _end(left)


async def _remove(job: HelmContext, approved: Approved, note: Note) -> list[Leftover]:
    execution = job.context.job.uplink.execution_id
    mark = PlanMark(execution, approved.mark.digest, approved.release.revision)
    guard = job.context.guard
    begun = begin_removal(approved.state, mark)
    state = await guard(job.state.write(begun), name="the storing of the state")
    await _uninstall(job, approved)
    removed = [
        RemovedObject(change.id, change.uid)
        for change in approved.plan.changes
        if change.action == "delete"
    ]
    remover = Remover(job.client, job.context.clock, note)
    until = job.context.deadline - _MARGIN_S
    left = await guard(remover.remove_all(removed, until=until), name="the removal")
    await guard(_remove_rest(job, approved, state, left, note), name="the removal of namespaces")
    objects = [StateObject(*key_of(entry.id), entry.uid) for entry in left]
    final = replace(finish(state, objects, healthy=False), healthy=None, plan=None, revision=0)
    final = replace(final, pull_secrets=state.pull_secrets if left else ())
    await guard(job.state.write(final), name="the storing of the state")
    return left


async def _remove_rest(
    job: HelmContext,
    approved: Approved,
    state: KubeState,
    left: Sequence[Leftover],
    note: Note,
) -> None:
    """Remove the logins of the registry, which leftovers may need, and namespaces."""
    if not left:
        await job.pull_secrets.remove_all(state.pull_secrets)
    await _remove_namespaces(job, approved, note)


def _end(left: Sequence[Leftover]) -> Outcome:
    if left:
        raise WorkFailed(Reason.LEFTOVERS, describe_leftovers(left))
    return Outcome(
        state=OutcomeState.SUCCEEDED,
        reason=Reason.COMPLETED,
        exit_code=0,
        outputs={"outputs": {}, "sensitive_outputs": []},
    )


async def _uninstall(job: HelmContext, approved: Approved) -> None:
    """Let Helm remove the release with its hooks; an object that stays is found afterwards."""
    if not approved.release.revision:
        return
    left_s = job.context.deadline - job.context.clock.monotonic()
    timeout_s = max(1, int(left_s) - _MARGIN_S)
    argv = helm.uninstall(job.tool, job.spec.release, job.spec.namespace, timeout_s=timeout_s)
    printed = await job.run_helm("uninstall", argv, approved.release.driver)
    if printed.code == 0:
        return
    driver, spec = approved.release.driver, job.spec
    failure = explain_helm("uninstall", printed, job.context.mask)
    guard = job.context.guard
    listing = list_records(job.client, driver, spec.namespace, spec.release)
    if await guard(listing, name="the check of the release"):
        raise await guard(explain_hook(job, driver, failure), name="the inquiry about the hook")
    # With an object that is held by a finalizer Helm fails although it removed its record.
    job.context.log.system(failure.message)


def _note_definition(change: ObjectChange) -> ObjectChange:
    """Return the removal of a definition that is a template of the chart, with what it means."""
    if change.id.kind != DEFINITION or change.action != "delete":
        return change
    note = "Helm removes it, because it is a template: all objects of its kind go with it"
    return replace(change, notes=(*change.notes, note))


async def _compare_definitions(
    job: HelmContext, facts: ReleaseFacts, changes: Sequence[ObjectChange]
) -> list[ObjectChange]:
    """Return the definitions that came with the chart, apart from its templates: they stay."""
    shown = {key_of(change.id) for change in changes}
    made = [entry for entry in facts.state.objects if entry.kind == DEFINITION]
    known = await find_known(job.client, [entry for entry in made if entry.key not in shown])
    return [
        ObjectChange(entry.id, "keep", live=entry.live, notes=(KEPT_DEFINITION,))
        for entry in known
        if entry.live is not None
    ]


async def _compare_hooks(job: HelmContext, facts: ReleaseFacts) -> list[ObjectChange]:
    """Return what hooks made and Helm would leave behind: Jobs of migrations, for example."""
    hooks = await list_hook_objects(job, facts.records)
    lives = await run_all(hooks, job.client.get)
    return [
        ObjectChange(object_id, "delete", live=live, notes=("a hook made it",))
        for object_id, live in zip(hooks, lives, strict=True)
        if live is not None and read_annotation(live, HOOK_ANNOTATION)
    ]


async def _compare_claims(job: HelmContext, changes: Sequence[ObjectChange]) -> list[ObjectChange]:
    """Return the claims that StatefulSets made: they stay, unless the app wants otherwise."""
    claims: list[ObjectChange] = []
    for change in changes:
        if change.id.kind != "StatefulSet" or change.live is None:
            continue
        templates = list_or_empty(
            object_or_empty(change.live.get("spec")).get("volumeClaimTemplates")
        )
        if not templates:
            continue
        selection = Selection(change.id.namespace, write_selector(change.live))
        listed = await job.client.list_objects(_CLAIMS, selection)
        claims += [_decide_claim(job, change.id, claim) for claim in listed.items]
    return claims


def _decide_claim(job: HelmContext, owner: ObjectId, claim: JsonObject) -> ObjectChange:
    value: JsonObject = {**claim, "apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    if job.spec.teardown.volumes:
        return ObjectChange(identify(value), "delete", live=value)
    note = f"StatefulSet {owner.name} made it: the data stays (teardown.volumes removes it)"
    return ObjectChange(identify(value), "keep", live=value, notes=(note,))


def _list_namespaces(job: HelmContext, facts: ReleaseFacts) -> list[str]:
    made = job.spec.namespace in facts.state.namespaces_made
    return [job.spec.namespace] if made and job.spec.teardown.namespace else []


async def _remove_namespaces(job: HelmContext, approved: Approved, note: Note) -> None:
    """Remove the namespace that the part made, unless something of others is in it."""
    remover = NamespaceRemover(job.client, job.context.clock, note)
    for name in approved.plan.namespaces:
        live = await job.client.get(name_namespace(name))
        if live is not None:
            until = job.context.deadline - _MARGIN_S
            if stays := await remover.remove(name, read_uid(live), until=until):
                job.context.log.system(stays)


def _write_notes(job: HelmContext, facts: ReleaseFacts, compared: Compared) -> list[str]:
    notes = [] if facts.recovery is None else [facts.recovery.note]
    namespace = f"the namespace {job.spec.namespace}"
    if compared.namespaces:
        notes.append(f"{namespace} is removed, unless something else is in it then")
    elif job.spec.namespace in facts.state.namespaces_made:
        notes.append(f"{namespace} stays: others may use it (teardown.namespace removes it)")
    else:
        notes.append(f"{namespace} stays: it was there before")
    return notes
