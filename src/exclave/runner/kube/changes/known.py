"""Objects of the state in the cluster: found again, pruned, or listed for a teardown."""

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from exclave.base.json_values import JsonObject
from exclave.runner.kube.api.client import ClusterClient
from exclave.runner.kube.api.discovery import Discovery
from exclave.runner.kube.api.objects import ObjectId
from exclave.runner.kube.changes.model import ObjectChange
from exclave.runner.kube.changes.ownership import Owner
from exclave.runner.kube.changes.parallel import run_all
from exclave.runner.kube.changes.prune import decide_prune
from exclave.runner.kube.changes.state import StateObject

DEFINITION: Final = "CustomResourceDefinition"
KEPT_DEFINITION: Final = "removing it would remove every object of its kind"


class KnownObject(NamedTuple):
    """An object of the state, and how it looks now; None if it is gone."""

    known: StateObject
    id: ObjectId
    live: JsonObject | None


def identify_known(discovery: Discovery, known: StateObject) -> ObjectId | None:
    """Return the object in the version that the cluster prefers; None if its kind is gone."""
    resource = discovery.find_any_version(known.group, known.kind)
    if resource is None:
        return None
    return ObjectId(known.group, resource.version, known.kind, known.namespace, known.name)


async def find_known(client: ClusterClient, objects: Sequence[StateObject]) -> list[KnownObject]:
    """Return the objects of a state as they are now; those of kinds that are gone are left out."""
    discovery = await client.discover()

    async def find_object(known: StateObject) -> KnownObject | None:
        object_id = identify_known(discovery, known)
        return object_id and KnownObject(known, object_id, await client.get(object_id))

    return [entry for entry in await run_all(objects, find_object) if entry is not None]


async def compare_known(
    client: ClusterClient,
    objects: Sequence[StateObject],
    wanted: Collection[tuple[str, str, str, str]],
    owner: Owner,
) -> list[ObjectChange]:
    """Return what happens to objects of the state that are not wanted any more."""
    left = [known for known in objects if known.key not in wanted]
    changes: list[ObjectChange] = []
    for known, object_id, live in await find_known(client, left):
        decision = decide_prune(known, live, owner)
        if decision.action == "forget":
            continue
        notes = (decision.note,) if decision.note else ()
        changes.append(ObjectChange(object_id, decision.action, live=live, notes=notes))
    return changes
