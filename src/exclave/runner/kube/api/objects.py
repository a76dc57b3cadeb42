"""Objects of a cluster: what identifies one, and how a text of manifests becomes objects."""

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final, NamedTuple

from exclave.base.errors import Problem
from exclave.base.json_values import Json, JsonObject, object_or_empty, text_or_empty
from exclave.runner.kube.api.yaml_reader import SourceDocument, read_documents

MAX_OBJECTS: Final = 5000
_MOST_FLAWS: Final = 50
"""Flaws of one text that are described; the rest are counted."""


class ObjectId(NamedTuple):
    """What identifies an object of a cluster; `namespace` is empty for cluster-scoped kinds."""

    group: str
    version: str
    kind: str
    namespace: str
    name: str

    @property
    def api_version(self) -> str:
        """The field `apiVersion` of the object."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def address(self) -> str:
        """The object in any version, for people and states: `apps/Deployment/ns/name`."""
        return "/".join(part for part in (self.group, self.kind, self.namespace, self.name) if part)

    @property
    def type(self) -> str:
        """The kind with its version: `apps/v1 Deployment`."""
        return f"{self.api_version} {self.kind}"


class SourceObject(NamedTuple):
    """An object of a text: where it stands there, and what it is."""

    document: int
    line: int
    id: ObjectId
    value: JsonObject


class ObjectsRefused(Problem):
    """A text has documents that are not objects; the message lists all of them."""

    code: ClassVar = "objects_refused"


def identify(value: JsonObject) -> ObjectId:
    """Return what identifies an object; fields that it lacks are empty."""
    api_version = text_or_empty(value.get("apiVersion"))
    group, _, version = api_version.rpartition("/")
    metadata = object_or_empty(value.get("metadata"))
    return ObjectId(
        group,
        version,
        text_or_empty(value.get("kind")),
        text_or_empty(metadata.get("namespace")),
        text_or_empty(metadata.get("name")),
    )


def read_objects(text: str) -> list[SourceObject]:
    """Return the objects of a text, lists flattened. Raises with all flaws at once."""
    objects: list[SourceObject] = []
    flaws: list[str] = []
    for document in read_documents(text):
        for value in flatten_list(document.value):
            flaw = find_flaw(value)
            if flaw or not isinstance(value, Mapping):
                flaws.append(f"document {document.number}, line {document.line}: {flaw}")
            else:
                objects.append(_locate(document, value))
    if len(objects) > MAX_OBJECTS:
        flaws.append(f"it has {len(objects)} objects; {MAX_OBJECTS} are allowed")
    if flaws:
        raise ObjectsRefused(describe_flaws(flaws))
    return objects


def flatten_list(value: Json) -> Iterator[Json]:
    """Yield the items of a `List`, otherwise the value itself."""
    if not isinstance(value, Mapping):
        yield value
        return
    items = value.get("items")
    is_list = text_or_empty(value.get("kind")).endswith("List")
    if not is_list or not isinstance(items, Sequence) or isinstance(items, str):
        yield value
        return
    for item in items:
        yield from flatten_list(item)


def find_flaw(value: Json) -> str:
    """Return why a value cannot be applied as an object; empty if it can."""
    if not isinstance(value, Mapping):
        return "this is not an object: it needs `apiVersion`, `kind` and `metadata`"
    missing = [key for key in ("apiVersion", "kind") if not text_or_empty(value.get(key))]
    metadata = object_or_empty(value.get("metadata"))
    if text_or_empty(metadata.get("name")):
        pass
    elif "generateName" in metadata:
        return "`generateName` cannot be applied: write `metadata.name`"
    else:
        missing.append("metadata.name")
    fields = " and ".join(f"`{key}`" for key in missing)
    return f"{fields} is missing" if missing else ""


def describe_flaws(flaws: Sequence[str]) -> str:
    """Return all flaws as one text, cut after a number that people still read."""
    more = len(flaws) - _MOST_FLAWS
    shown = [*flaws[:_MOST_FLAWS], *([f"and {more} more"] if more > 0 else [])]
    return "\n".join(shown)


def _locate(document: SourceDocument, value: JsonObject) -> SourceObject:
    return SourceObject(document.number, document.line, identify(value), value)
