"""The state of a part that has objects in a cluster: what it made, where, and by which plan."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple

from exclave.base.json_values import (
    Json,
    JsonObject,
    list_or_empty,
    object_or_empty,
    parse_object,
    require_list,
    require_text,
    text_or_empty,
)
from exclave.runner.kube.api.objects import ObjectId
from exclave.wire.states import StateHeader, StateResource

FORMAT: Final = "exclave-kube/1"


class StateObject(NamedTuple):
    """An object of the state; the uid is empty while it may not have been made yet."""

    group: str
    kind: str
    namespace: str
    name: str
    uid: str = ""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What identifies it in any version and after it was recreated."""
        return self[:4]

    @property
    def address(self) -> str:
        """The object for people."""
        return "/".join(part for part in self.key if part)


class PlanMark(NamedTuple):
    """The plan that the state is of: which execution handed it in, and its digest."""

    execution: str
    digest: str
    revision: int = 0


@dataclass(frozen=True, slots=True)
class KubeState:
    """What a part has in a cluster. After a crash it has more than there is, never less."""

    serial: int
    lineage: str
    kind: Literal["helm", "manifest"]
    cluster: str
    """The uid of the cluster's namespace `kube-system`."""
    namespace: str
    release: str = ""
    revision: int = 0
    objects: Sequence[StateObject] = ()
    namespaces_made: Sequence[str] = ()
    pull_secrets: Sequence[str] = ()
    """Namespaces that have the login of the registry for pods of the part."""
    plan: PlanMark | None = None
    healthy: PlanMark | None = None
    """The newest plan whose rollout succeeded."""
    removing: PlanMark | None = None
    """The teardown that began and did not end: its execution, and the revision it found."""


def key_of(object_id: ObjectId) -> tuple[str, str, str, str]:
    """Return what identifies an object in any version."""
    return object_id.group, object_id.kind, object_id.namespace, object_id.name


def unite(state: KubeState, planned: Iterable[ObjectId], mark: PlanMark) -> KubeState:
    """Return the state before the first change: old objects and those of the plan."""
    known = {entry.key for entry in state.objects}
    added = [
        StateObject(*key_of(object_id)) for object_id in planned if key_of(object_id) not in known
    ]
    return replace(state, serial=state.serial + 1, objects=(*state.objects, *added), plan=mark)


def finish(state: KubeState, objects: Iterable[StateObject], *, healthy: bool) -> KubeState:
    """Return the state after success: exactly these objects."""
    mark = state.plan if healthy else state.healthy
    return replace(
        state, serial=state.serial + 1, objects=tuple(objects), healthy=mark, removing=None
    )


def begin_removal(state: KubeState, mark: PlanMark) -> KubeState:
    """Return the state before a teardown changes anything."""
    return replace(state, serial=state.serial + 1, removing=mark)


def move(state: KubeState) -> KubeState:
    """Return a state for another cluster: the same objects, none of them known to exist."""
    objects = tuple(entry._replace(uid="") for entry in state.objects)
    return replace(state, objects=objects, namespaces_made=(), pull_secrets=())


def write_state(state: KubeState) -> bytes:
    """Return the document of a state."""
    document: dict[str, Json] = {
        "format": FORMAT,
        "serial": state.serial,
        "lineage": state.lineage,
        "kind": state.kind,
        "cluster": state.cluster,
        "release": state.release,
        "namespace": state.namespace,
        "revision": state.revision,
        "objects": [list(entry) for entry in state.objects],
        "namespaces_made": list(state.namespaces_made),
        "pull_secrets": list(state.pull_secrets),
        "plan": write_mark(state.plan),
        "healthy": write_mark(state.healthy),
        "removing": write_mark(state.removing),
    }
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()


def read_kube_state(data: bytes) -> KubeState:
    """Return the state in a document; `ValueError` if it is another one, such as Terraform's."""
    document = parse_object(data, "the state")
    if document.get("format") != FORMAT:
        message = f"the state of this part is not of the format `{FORMAT}`"
        raise ValueError(message)
    kind = require_text(document.get("kind"), "`kind` of the state")
    return KubeState(
        serial=_read_number(document, "serial"),
        lineage=require_text(document.get("lineage"), "`lineage` of the state"),
        kind="helm" if kind == "helm" else "manifest",
        cluster=require_text(document.get("cluster"), "`cluster` of the state"),
        namespace=text_or_empty(document.get("namespace")),
        release=text_or_empty(document.get("release")),
        revision=_read_number(document, "revision"),
        objects=tuple(_read_object(entry) for entry in _list(document, "objects")),
        namespaces_made=tuple(text_or_empty(name) for name in _list(document, "namespaces_made")),
        pull_secrets=tuple(text_or_empty(name) for name in _list(document, "pull_secrets")),
        plan=read_mark(document.get("plan")),
        healthy=read_mark(document.get("healthy")),
        removing=read_mark(document.get("removing")),
    )


def describe_state(state: KubeState, data: bytes, types: Mapping[str, str]) -> StateHeader:
    """Describe a state without values; `types` has the versions of kinds by group and kind."""
    return StateHeader(
        serial=state.serial,
        lineage=state.lineage,
        sha256=hashlib.sha256(data).hexdigest(),
        resources=[
            StateResource(
                address=known.address,
                type=types.get(f"{known.group}/{known.kind}", known.kind),
                id=known.uid,
            )
            for known in state.objects
        ],
    )


def _read_object(value: Json) -> StateObject:
    parts = [text_or_empty(part) for part in require_list(value, "an object of the state")]
    if len(parts) != len(StateObject._fields):
        message = "an object of the state has too few or too many parts"
        raise ValueError(message)
    return StateObject(*parts)


def write_mark(mark: PlanMark | None) -> JsonObject | None:
    """Return a mark as it is stored."""
    return None if mark is None else mark._asdict()


def read_mark(value: Json) -> PlanMark | None:
    """Return a stored mark; None if there is none."""
    if value is None:
        return None
    mark = object_or_empty(value)
    return PlanMark(
        text_or_empty(mark.get("execution")),
        text_or_empty(mark.get("digest")),
        _read_number(mark, "revision"),
    )


def _read_number(document: JsonObject, key: str) -> int:
    number = document.get(key)
    if not isinstance(number, int):
        message = f"`{key}` of the state is not a number"
        raise ValueError(message)  # noqa: TRY004 - a wrong document
    return number


def _list(document: JsonObject, key: str) -> Sequence[Json]:
    return list_or_empty(document.get(key))
