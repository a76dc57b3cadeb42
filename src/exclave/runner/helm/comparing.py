"""Compare a rendered release with the cluster: objects, CRDs, namespaces, and what is left over."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from exclave.base.errors import Problem
from exclave.base.json_values import JsonObject
from exclave.runner.helm.context import HelmContext
from exclave.runner.helm.ownership import describe_owner
from exclave.runner.helm.records import ReleaseRecord, list_since_deployed
from exclave.runner.helm.render import Rendering
from exclave.runner.helm.rendered import read_release
from exclave.runner.kube.api.objects import ObjectId
from exclave.runner.kube.changes.compare import Comparison, list_refusals
from exclave.runner.kube.changes.known import compare_known
from exclave.runner.kube.changes.model import ObjectChange, WantedObject
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
    live = await job.client.get(ObjectId("", "v1", "Namespace", "", name))
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


def _note_adoption(job: HelmContext, change: ObjectChange) -> ObjectChange:
    """Return a change with a note if the object belonged to somebody else before."""
    live = change.live
    if live is None or change.refusal or job.owner.owns(live):
        return change
    note = f"it is adopted by the release; before, it belonged to {describe_owner(live)}"
    return replace(change, notes=(*change.notes, note))
