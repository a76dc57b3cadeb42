"""Compare a rendered release with the cluster: objects, CRDs, namespaces, and what is left over."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from exclave.base.errors import Problem
from exclave.base.json_values import JsonObject, list_or_empty, object_or_empty
from exclave.runner.helm.context import HelmContext
from exclave.runner.helm.ownership import describe_owner
from exclave.runner.helm.records import ReleaseRecord, list_since_deployed
from exclave.runner.helm.render import Rendering
from exclave.runner.helm.rendered import read_release
from exclave.runner.kube.api.discovery import Discovery
from exclave.runner.kube.changes.cleaning import clean
from exclave.runner.kube.changes.compare import Comparison, list_refusals
from exclave.runner.kube.changes.fields import FieldChange, list_changes
from exclave.runner.kube.changes.known import compare_known
from exclave.runner.kube.changes.model import ObjectChange, WantedObject
from exclave.runner.kube.changes.namespaces import find_lasting_namespace
from exclave.runner.kube.changes.reading import list_made_kinds, place_objects
from exclave.runner.kube.changes.state import KubeState, StateObject, key_of
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason

CRD_MANAGER = "exclave"
_OLD_CRDS = "the chart has another version of it, and Helm never upgrades CRDs"


@dataclass(frozen=True, slots=True)
class CrdOwner:
    """The owner of CRDs: none, so that a teardown leaves them."""

    manager: str = CRD_MANAGER

    def mark(self, value: JsonObject) -> JsonObject:
        """Return the object as it is."""
        return value

    def owns(self, live: JsonObject) -> bool:
        """Return False: no release owns a definition."""
        del live
        return False

    def find_other(self, live: JsonObject) -> str:
        """Return nothing: definitions are shared."""
        del live
        return ""


@dataclass(frozen=True, slots=True)
class Compared:
    """What would happen to everything that a plan is about."""

    wanted: Sequence[WantedObject]
    changes: Sequence[ObjectChange]
    """Of the objects of the release, and of those that are not wanted any more."""
    crds: Sequence[tuple[WantedObject, ObjectChange]] = ()
    namespaces: Sequence[str] = ()
    """Namespaces that are made."""
    notes: Sequence[str] = ()

    @property
    def all_changes(self) -> list[ObjectChange]:
        """All changes of objects, definitions first."""
        return [*(change for _, change in self.crds), *self.changes]


async def compare_release(
    job: HelmContext,
    state: KubeState,
    records: Sequence[ReleaseRecord],
    rendering: Rendering,
    planned_crds: Sequence[WantedObject] = (),
) -> Compared:
    """Return what a deploy of the rendered release would change; raise with all refusals."""
    discovery = await job.client.discover()
    namespaces = await find_new_namespaces(job)
    sources = [*rendering.crds, *rendering.release.objects]
    try:
        placed = place_objects(sources, discovery, job.spec.namespace)
    except Problem as problem:
        raise WorkFailed(Reason.OBJECT_REFUSED, problem.message) from problem
    definitions = [*placed[: len(rendering.crds)], *planned_crds]
    wanted = [
        WantedObject(entry.id, job.owner.mark(entry.value))
        for entry in placed[len(rendering.crds) :]
    ]
    crds, notes = await _compare_crds(job, definitions)
    comparison = Comparison(
        job.client,
        job.owner,
        namespaces,
        [kind[:3] for kind in list_made_kinds(rendering.crds)],
        frozenset({"helm"}),
    )
    changes = [_note_adoption(job, change) for change in await comparison.compare_all(wanted)]
    changes = add_dropped_fields(changes, wanted, _read_deployed(job, discovery, records))
    known = list_known(state, records, job.spec.namespace)
    keys = {key_of(entry.id) for entry in wanted}
    changes += await compare_known(job.client, known, keys, job.owner)
    refusals = list_refusals([*changes, *(change for _, change in crds)])
    if refusals:
        raise WorkFailed(Reason.OBJECT_REFUSED, job.context.mask("\n".join(refusals)))
    return Compared(wanted, changes, crds, namespaces, notes)


async def find_new_namespaces(job: HelmContext) -> list[str]:
    """Return the release's namespace if it does not exist yet."""
    name = job.spec.namespace
    live = await find_lasting_namespace(job.client, job.context.clock, name)
    return [name] if live is None else []


def list_known(
    state: KubeState, records: Sequence[ReleaseRecord], namespace: str
) -> list[StateObject]:
    """Return what the state and the revisions since the last deployed one may have made."""
    known = {entry.key: entry for entry in state.objects}
    for record in list_since_deployed(records):
        for source in read_release(record.release).objects:
            group, _, kind, place, name = source.id
            for where in {place or namespace, place}:
                known.setdefault((group, kind, where, name), StateObject(group, kind, where, name))
    return list(known.values())


async def _compare_crds(
    job: HelmContext, definitions: Sequence[WantedObject]
) -> tuple[list[tuple[WantedObject, ObjectChange]], list[str]]:
    """Return the definitions that are made or changed, and notes about those that are left."""
    comparison = Comparison(job.client, CrdOwner())
    compared = await comparison.compare_all(definitions)
    acting: list[tuple[WantedObject, ObjectChange]] = []
    notes: list[str] = []
    for wanted, change in zip(definitions, compared, strict=True):
        if change.action == "create" or (job.spec.crds == "upgrade" and change.action == "update"):
            acting.append((wanted, change))
        elif change.action == "update":
            notes.append(f"{wanted.id.address}: {_OLD_CRDS}")
    return acting, notes


def add_dropped_fields(
    changes: Sequence[ObjectChange],
    wanted: Sequence[WantedObject],
    deployed: Mapping[tuple[str, str, str, str], JsonObject],
) -> list[ObjectChange]:
    """Return the changes with fields that Helm 4 drops from what Helm 3 made.

    A dry run does not show them: Helm first hands over the fields that it owned by client-side
    apply, and only then leaves out those that the new manifest has not.
    """
    values = {entry.id: entry.value for entry in wanted}
    completed = []
    for change in changes:
        old = deployed.get(key_of(change.id))
        if old is not None and change.live is not None and _was_updated_by_helm(change.live):
            known = {entry.path for entry in change.fields}
            dropped = [
                entry
                for entry in list_dropped(change.live, old, values[change.id])
                if entry.path not in known
            ]
            if dropped:
                fields = (*change.fields, *dropped)
                action = "update" if change.action == "no-op" else change.action
                change = replace(change, fields=fields, action=action)  # noqa: PLW2901
        completed.append(change)
    return completed


def list_dropped(live: JsonObject, old: JsonObject, wanted: JsonObject) -> list[FieldChange]:
    """Return the live fields that the old manifest had and the wanted one has not."""
    absent = {
        change.path: change
        for change in list_changes(clean(live), clean(wanted))
        if change.after is None
    }
    return [
        absent[change.path]
        for change in list_changes(clean(old), clean(wanted))
        if change.after is None and change.path in absent
    ]


def _read_deployed(
    job: HelmContext, discovery: Discovery, records: Sequence[ReleaseRecord]
) -> dict[tuple[str, str, str, str], JsonObject]:
    """Return the objects of the last deployed revision by what identifies them."""
    deployed = [record for record in records if record.status == "deployed"]
    if not deployed:
        return {}
    objects: dict[tuple[str, str, str, str], JsonObject] = {}
    for source in read_release(deployed[-1].release).objects:
        resource = discovery.find_any_version(source.id.group, source.id.kind)
        if resource is not None:
            namespace = (source.id.namespace or job.spec.namespace) if resource.namespaced else ""
            object_id = source.id._replace(namespace=namespace)
            objects[key_of(object_id)] = job.owner.mark(source.value)
    return objects


def _was_updated_by_helm(live: JsonObject) -> bool:
    """Return whether Helm 3 set fields of an object, by client-side apply."""
    entries = list_or_empty(object_or_empty(live.get("metadata")).get("managedFields"))
    return any(
        (entry.get("manager"), entry.get("operation")) == ("helm", "Update")
        for entry in map(object_or_empty, entries)
    )


def _note_adoption(job: HelmContext, change: ObjectChange) -> ObjectChange:
    """Return a change with a note if the object belonged to somebody else before."""
    live = change.live
    if live is None or change.refusal or job.owner.owns(live):
        return change
    note = f"it is adopted by the release; before, it belonged to {describe_owner(live)}"
    return replace(change, notes=(*change.notes, note))
