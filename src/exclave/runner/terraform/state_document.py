"""Terraform's state file as values, as far as the runner reads it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from exclave.base.json_values import (
    Json,
    JsonObject,
    object_or_empty,
    parse_object,
    require_list,
    require_object,
    require_text,
    text_or_empty,
)

KeyPath = tuple[Json, ...]
"""The keys that lead to a value inside of another: names of attributes, indexes of lists."""


@dataclass(frozen=True, slots=True)
class Output:
    """An output of a module."""

    value: Json
    sensitive: bool = False


@dataclass(frozen=True, slots=True)
class Instance:
    """One instance of a resource."""

    address: str
    attributes: JsonObject
    sensitive_paths: tuple[KeyPath, ...] = ()

    def list_sensitive_values(self) -> Iterator[Json]:
        """List the values that Terraform marks as sensitive."""
        return (follow(self.attributes, path) for path in self.sensitive_paths)

    def find_id(self) -> str:
        """Return the id under which the cloud knows it; empty if it has none or it is sensitive."""
        hidden = any(follow({"id": ""}, path) == "" for path in self.sensitive_paths)
        return "" if hidden else text_or_empty(self.attributes.get("id"))


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource with its instances; `managed` is false for data that is only read."""

    type: str
    managed: bool
    instances: tuple[Instance, ...]


@dataclass(frozen=True, slots=True)
class StateDocument:
    """A state file."""

    serial: int
    lineage: str
    outputs: Mapping[str, Output]
    resources: tuple[Resource, ...]


def parse_state(data: bytes) -> StateDocument:
    """Return the document of a state file; `ValueError` if the file is not one."""
    document = parse_object(data, "the state")
    serial = document.get("serial")
    if not isinstance(serial, int):
        message = "`serial` of the state is not a number"
        raise ValueError(message)  # noqa: TRY004 - a wrong document
    return StateDocument(
        serial,
        require_text(document.get("lineage"), "`lineage` of the state"),
        read_outputs(document.get("outputs")),
        tuple(_read_resource(resource) for resource in _list_objects(document, "resources")),
    )


def read_outputs(outputs: Json) -> Mapping[str, Output]:
    """Return the outputs in a state or in the planned values of a plan, by name."""
    result: dict[str, Output] = {}
    for name, value in require_object(outputs or {}, "`outputs`").items():
        output = require_object(value, f"the output `{name}`")
        result[name] = Output(output.get("value"), sensitive=bool(output.get("sensitive")))
    return result


def follow(value: Json, path: KeyPath) -> Json:
    """Return the value at a path; None if there is nothing."""
    for key in path:
        if isinstance(value, Mapping) and isinstance(key, str):
            value = value.get(key)
        elif isinstance(value, Sequence) and isinstance(key, int) and 0 <= key < len(value):
            value = value[key]
        else:
            return None
    return value


def _read_resource(resource: JsonObject) -> Resource:
    kind = require_text(resource.get("type"), "`type` of a resource in the state")
    name = require_text(resource.get("name"), "`name` of a resource in the state")
    module = text_or_empty(resource.get("module"))
    address = f"{module}.{kind}.{name}" if module else f"{kind}.{name}"
    instances = tuple(
        Instance(
            address + _write_key(instance.get("index_key")),
            object_or_empty(instance.get("attributes")),
            _read_paths(instance.get("sensitive_attributes")),
        )
        for instance in _list_objects(resource, "instances")
    )
    return Resource(kind, resource.get("mode") == "managed", instances)


def _read_paths(paths: Json) -> tuple[KeyPath, ...]:
    return tuple(
        _read_path(path)
        for path in require_list(paths or (), "`sensitive_attributes` of the state")
    )


def _read_path(path: Json) -> KeyPath:
    """Read a mark of a sensitive value. One that is not understood is refused, not skipped."""
    what = "an entry of `sensitive_attributes` in the state"
    steps = (require_object(step, what) for step in require_list(path, what))
    keys = (step.get("value") for step in steps)
    return tuple(key.get("value") if isinstance(key, Mapping) else key for key in keys)


def _write_key(key: Json) -> str:
    return "" if key is None else f"[{json.dumps(key, ensure_ascii=False)}]"


def _list_objects(document: JsonObject, key: str) -> Iterator[JsonObject]:
    for entry in require_list(document.get(key) or (), f"`{key}` of the state"):
        yield require_object(entry, f"an entry of `{key}` in the state")
