"""Tears a part down: says what goes and what stays, and does not forget what does not go."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from exclave.base.json_values import JsonObject, list_or_empty, object_or_empty, text_or_empty
from exclave.runner.kube.api.discovery import Resource
from exclave.runner.kube.api.lists import Selection
from exclave.runner.kube.api.objects import ObjectId, identify
from exclave.runner.kube.changes.going_back import make_mark
from exclave.runner.kube.changes.known import DEFINITION, KEPT_DEFINITION, KnownObject, find_known
from exclave.runner.kube.changes.model import ObjectChange
from exclave.runner.kube.changes.namespaces import NamespaceRemover
from exclave.runner.kube.changes.plan_file import PlanFile, PlannedChange
from exclave.runner.kube.changes.prune import decide_prune
from exclave.runner.kube.changes.removal import Leftover, RemovedObject, Remover, describe_leftovers
from exclave.runner.kube.changes.state import KubeState, StateObject, key_of
from exclave.runner.kube.manifests.apply import NoteChange, check_plan, open_journal
from exclave.runner.kube.manifests.context import ManifestContext
from exclave.runner.kube.manifests.plan import Planned
from exclave.runner.kube.rollouts.pods import write_selector
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import OutcomeState, Reason
from exclave.wire.runner import Outcome

_LAST_S: Final = 10.0
_CLAIM: Final = Resource(
    "", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", namespaced=True
)
_CLAIM_NOTE: Final = "it holds data of the StatefulSet"


async def plan_teardown(job: ManifestContext, state: KubeState) -> Planned:
    """Return what a teardown removes and what it leaves."""
    changes: list[ObjectChange] = []
    for entry in await find_known(job.client, state.objects):
        changes += await _plan_object(job, entry)
    removes_namespace = job.spec.teardown.namespace
    for name in state.namespaces_made:
        live = await job.client.get(ObjectId("", "v1", "Namespace", "", name))
        if live is not None:
            stays = "others may use it (teardown.namespace removes it)"
            note = "unless something else is in it then" if removes_namespace else stays
            changes.append(
                ObjectChange(
                    identify({"apiVersion": "v1", "kind": "Namespace", **live}),
                    "delete" if removes_namespace else "keep",
                    live=live,
                    notes=(note,),
                )
            )
    namespaces = tuple(state.namespaces_made) if removes_namespace else ()
    return Planned("teardown", "", state, changes, None, namespaces)


async def _plan_object(job: ManifestContext, entry: KnownObject) -> list[ObjectChange]:
    decision = decide_prune(entry.known, entry.live, job.owner)
    if decision.action == "forget" or entry.live is None:
        return []
    if entry.id.kind == DEFINITION:
        return [ObjectChange(entry.id, "keep", live=entry.live, notes=(KEPT_DEFINITION,))]
    notes = (decision.note,) if decision.note else ()
    change = ObjectChange(entry.id, decision.action, live=entry.live, notes=notes)
    return [change, *await _plan_claims(job, entry.id, entry.live)]


async def _plan_claims(
    job: ManifestContext, object_id: ObjectId, live: JsonObject
) -> list[ObjectChange]:
    """Return what happens to the claims that a StatefulSet has made."""
    templates = list_or_empty(object_or_empty(live.get("spec")).get("volumeClaimTemplates"))
    if object_id.kind != "StatefulSet" or not templates:
        return []
    prefixes = tuple(
        f"{text_or_empty(object_or_empty(object_or_empty(template).get('metadata')).get('name'))}"
        f"-{object_id.name}-"
        for template in templates
    )
    selection = Selection(object_id.namespace, write_selector(live))
    claims = (await job.client.list_objects(_CLAIM, selection)).items
    removes = job.spec.teardown.volumes
    return [
        ObjectChange(
            identify(claim),
            "delete" if removes else "keep",
            live=claim,
            notes=(f"{_CLAIM_NOTE}{'' if removes else ' (teardown.volumes removes it)'}",),
        )
        for claim in claims
        if identify(claim).name.startswith(prefixes)
    ]


async def apply_teardown(job: ManifestContext, plan: PlanFile) -> Outcome:
    """Remove the objects of a plan; what does not go stays in the state and fails the job."""
    state = await check_plan(job, plan)
    removed = [change for change in plan.changes if change.action == "delete"]
    async with job.state.locked("teardown"):
        async with open_journal(job) as note:
            leftovers = await _remove(job, removed, note, state.pull_secrets)
        ended = replace(
            state,
            serial=state.serial + 1,
            objects=tuple(StateObject(*key_of(entry.id), entry.uid) for entry in leftovers),
            namespaces_made=state.namespaces_made if leftovers else (),
            pull_secrets=state.pull_secrets if leftovers else (),
            plan=make_mark(job.spec.plan),
            healthy=None,
        )
        ended = await job.state.write(ended)
    if leftovers:
        raise WorkFailed(Reason.LEFTOVERS, describe_leftovers(leftovers))
    return Outcome(
        state=OutcomeState.SUCCEEDED,
        reason=Reason.COMPLETED,
        exit_code=0,
        outputs={
            "outputs": {},
            "sensitive_outputs": [],
            "serial": ended.serial,
            "lineage": ended.lineage,
            "summary": {"destroy": sum(change.id.kind != "Namespace" for change in removed)},
        },
    )


async def _remove(
    job: ManifestContext,
    removed: Sequence[PlannedChange],
    note: NoteChange,
    pull_namespaces: Sequence[str],
) -> list[Leftover]:
    """Remove objects, then logins of the registry, then namespaces; return what does not go."""
    remover = Remover(job.client, job.context.clock, note)
    objects = [
        RemovedObject(change.id, change.uid) for change in removed if change.id.kind != "Namespace"
    ]
    leftovers = await remover.remove_all(objects, until=job.context.deadline - _LAST_S)
    if not leftovers:
        await job.pull_secrets.remove_all(pull_namespaces)
        for change in removed:
            if change.id.kind == "Namespace":
                await _remove_namespace(job, note, change)
    return leftovers


async def _remove_namespace(job: ManifestContext, note: NoteChange, change: PlannedChange) -> None:
    """Remove a namespace that the part made, unless something of others is in it."""
    remover = NamespaceRemover(job.client, job.context.clock, note)
    until = job.context.deadline - _LAST_S
    if stays := await remover.remove(change.id.name, change.uid, until=until):
        job.context.log.system(stays)
