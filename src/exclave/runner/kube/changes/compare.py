"""Compare wanted objects with the cluster: a dry run on the server, nothing is changed.

The server's answer has all defaults, and the fields of others as they are, so that what differs
from the live object is exactly what an apply would change.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from exclave.base.json_values import JsonObject, list_or_empty, object_or_empty
from exclave.runner.kube.api.client import ClusterClient
from exclave.runner.kube.api.errors import ApiRefused, ApiStatus
from exclave.runner.kube.api.objects import ObjectId
from exclave.runner.kube.changes.answers import Verdict, classify_answer, list_immutable
from exclave.runner.kube.changes.cleaning import clean
from exclave.runner.kube.changes.fields import describe_new, list_changes, list_wanted_changes
from exclave.runner.kube.changes.model import Action, ObjectChange, TakenPath, WantedObject
from exclave.runner.kube.changes.ownership import Owner, is_ending
from exclave.runner.kube.changes.parallel import run_all

UNCHECKED_NAMESPACE: Final = "in a new namespace: not checked by the server"
UNCHECKED_KIND: Final = "its kind is made by this plan: not checked by the server"
_CONFLICT = re.compile(r'conflict with "([^"]*)"(?: with subresource "([^"]*)")?')
_TYPED_PATCH = re.compile(r"^failed to create typed patch object \([^)]*\): ")
_WEBHOOK = re.compile(r'webhook "([^"]*)"')
_WITH_DATA: Final = {
    "PersistentVolumeClaim": "create a claim with another name and copy the data",
    "PersistentVolume": "create a volume with another name and copy the data",
    "Namespace": "everything in it would be lost",
    "CustomResourceDefinition": "every object of its kind would be lost",
    "StatefulSet": (
        "delete it with `kubectl delete statefulset --cascade=orphan`, which keeps its pods and"
        " volumes, and deploy again"
    ),
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """How objects are compared: for whom, and what the plan makes before them."""

    client: ClusterClient
    owner: Owner
    new_namespaces: Collection[str] = ()
    """Namespaces that do not exist yet and that the apply creates."""
    new_kinds: Collection[tuple[str, str, str]] = ()
    """Kinds, as group, version and kind, that the plan makes."""
    quiet_managers: frozenset[str] = frozenset()
    """Managers that are the owner under another name: taking their fields is not reported."""

    async def compare_all(self, wanted: Sequence[WantedObject]) -> list[ObjectChange]:
        """Return what would happen to each object; refusals of the server are in the changes."""
        return await run_all(wanted, self._compare)

    async def _compare(self, wanted: WantedObject) -> ObjectChange:
        object_id, value = wanted
        discovery = await self.client.discover()
        if discovery.find(object_id.group, object_id.version, object_id.kind) is None:
            return _create(wanted, (UNCHECKED_KIND,))
        if object_id.namespace in self.new_namespaces:
            return _create(wanted, (UNCHECKED_NAMESPACE,))
        live = await self.client.get(object_id)
        other = "" if live is None else self.owner.find_other(live)
        if other:
            refusal = f"it belongs to {other}: give it another name, or remove it there first"
            return ObjectChange(object_id, "update", live=live, refusal=refusal)
        if live is not None and is_ending(live):
            notes = ("it is being removed: the apply waits until it is gone",)
            fields = tuple(describe_new(value))
            return ObjectChange(object_id, "replace", fields, live, value, notes=notes)
        if live is not None and _has_failed(wanted, live):
            notes = ("it has failed: it is replaced, so that it runs again",)
            fields = tuple(list_wanted_changes(clean(live), value))
            return ObjectChange(object_id, "replace", fields, live, value, notes=notes)
        return await self._ask(wanted, live)

    async def _ask(self, wanted: WantedObject, live: JsonObject | None) -> ObjectChange:
        try:
            after = await self.client.apply(wanted.value, manager=self.owner.manager, dry_run=True)
        except ApiRefused as refused:
            if classify_answer(refused.status) is not Verdict.CONFLICT:
                return explain_refusal(wanted, live, refused)
            taken = list_taken(refused.status, self.quiet_managers)
        else:
            return _differ(wanted, live, after)
        try:
            after = await self.client.apply(
                wanted.value, manager=self.owner.manager, dry_run=True, force=True
            )
        except ApiRefused as refused:
            return explain_refusal(wanted, live, refused)
        return _differ(wanted, live, after, taken, force=True)


def explain_refusal(
    wanted: WantedObject, live: JsonObject | None, refused: ApiRefused
) -> ObjectChange:
    """Return the change that a refused dry run means; raise if it is not about the object."""
    object_id, status = wanted.id, refused.status
    match classify_answer(status):
        case Verdict.REPLACE if live is not None and (hint := _find_data(object_id, live)):
            # The lines after the first are a comparison in Go's names of fields.
            sentence = (status.causes[0].message if status.causes else status.message).split("\n")[
                0
            ]
            refusal = f"it holds data and cannot be changed in place: {sentence}. Instead: {hint}"
            return ObjectChange(object_id, "replace", live=live, refusal=refusal)
        case Verdict.REPLACE if live is not None:
            fields = tuple(list_wanted_changes(clean(live), wanted.value))
            forcing = tuple(cause.field for cause in list_immutable(status))
            return ObjectChange(object_id, "replace", fields, live, wanted.value, forcing=forcing)
        case Verdict.NEW_NAMESPACE:
            refusal = f"the namespace `{object_id.namespace}` does not exist: add it to the objects"
            return ObjectChange(object_id, "create", refusal=refusal)
        case Verdict.NO_DRY_RUN:
            return _compare_here(wanted, live, status)
        case Verdict.REFUSED | Verdict.REPLACE:
            action: Action = "create" if live is None else "update"
            return ObjectChange(object_id, action, live=live, refusal=_explain(status))
        case Verdict.CONFLICT | Verdict.FAILED:
            raise refused


def list_taken(status: ApiStatus, quiet: Iterable[str] = ()) -> list[TakenPath]:
    """Return the fields of other managers that a conflict is about."""
    taken: list[TakenPath] = []
    for cause in status.causes:
        match = _CONFLICT.search(cause.message)
        name, part = (match[1], match[2]) if match else (cause.message, "")
        if name not in set(quiet):
            manager = f"{name} ({part})" if part else name
            taken.append(TakenPath(cause.field.removeprefix("."), manager))
    return taken


def list_refusals(changes: Iterable[ObjectChange]) -> list[str]:
    """Return why objects cannot be applied, one line for each."""
    return [
        f"{change.id.address}: {' '.join(change.refusal.split())}"
        for change in changes
        if change.refusal
    ]


def _differ(
    wanted: WantedObject,
    live: JsonObject | None,
    after: JsonObject,
    taken: Sequence[TakenPath] = (),
    *,
    force: bool = False,
) -> ObjectChange:
    if live is None:
        return _create(wanted, after=after)
    fields = tuple(list_changes(clean(live), clean(after)))
    action: Action = "update" if fields or taken else "no-op"
    return ObjectChange(wanted.id, action, fields, live, after, taken, force=force)


def _create(
    wanted: WantedObject, notes: Sequence[str] = (), after: JsonObject | None = None
) -> ObjectChange:
    fields = tuple(describe_new(wanted.value))
    return ObjectChange(wanted.id, "create", fields, after=after or wanted.value, notes=notes)


def _compare_here(wanted: WantedObject, live: JsonObject | None, status: ApiStatus) -> ObjectChange:
    """Compare without the server, because a webhook of the cluster cannot be asked."""
    name = _WEBHOOK.search(status.message)
    webhook = f"the webhook `{name[1]}`" if name else "an admission webhook"
    note = f"{webhook} supports no dry run: compared without the server"
    if live is None:
        return _create(wanted, (note,))
    fields = tuple(list_wanted_changes(clean(live), wanted.value))
    action: Action = "update" if fields else "no-op"
    return ObjectChange(wanted.id, action, fields, live, wanted.value, notes=(note,))


def _explain(status: ApiStatus) -> str:
    if "may not be specified when" in status.message:
        return f"{status.message} (set the field to `null` to remove the server's default)"
    return _TYPED_PATCH.sub("", status.message)


def _find_data(object_id: ObjectId, live: JsonObject) -> str:
    """Return how to change an object whose replacement would lose data; empty if it has none."""
    if object_id.kind == "StatefulSet":
        templates = object_or_empty(live.get("spec")).get("volumeClaimTemplates")
        return _WITH_DATA["StatefulSet"] if list_or_empty(templates) else ""
    return _WITH_DATA.get(object_id.kind, "")


def _has_failed(wanted: WantedObject, live: JsonObject) -> bool:
    """Return whether this is a Job that will do nothing more: applying it again has no effect."""
    if (wanted.id.group, wanted.id.kind) != ("batch", "Job"):
        return False
    conditions = list_or_empty(object_or_empty(live.get("status")).get("conditions"))
    return any(
        (condition.get("type"), condition.get("status")) == ("Failed", "True")
        for condition in map(object_or_empty, conditions)
    )
