"""The vendor's own templates: which values the Stack gives them, and what they return."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from exclave.base.json_values import Json, JsonObject, object_or_empty, parse_object
from exclave.stacks.azure.references import Resource
from exclave.stacks.azure.resources import name_nested
from exclave.stacks.model import NestedModel, StackModel

SCHEMA = "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#"
LINKED = "linked"
"""The deployment of a template at an address, within the template that stands for it."""


@dataclass(frozen=True, slots=True)
class NestedPlan:
    """A template of the vendor that is deployed with the Stack."""

    nested: NestedModel
    resource: Resource
    template: JsonObject
    values: Mapping[str, Json]
    outputs: Mapping[str, str]
    """The types of what it returns, by name."""


class NestedError(ValueError):
    """A template of the vendor cannot be deployed with the Stack."""


def plan_nested(model: StackModel) -> tuple[NestedPlan, ...]:
    """Return the vendor's templates in their order; raise `NestedError` if one cannot work."""
    return tuple(
        _plan(model, nested) for nested in sorted(model.nested, key=lambda item: item.index)
    )


def _plan(model: StackModel, nested: NestedModel) -> NestedPlan:
    resource = name_nested(nested.name, nested.index, model)
    given = nested.parameters or {}
    if not nested.content:
        return NestedPlan(nested, resource, _write_link(nested.address, given), {}, {})
    template = parse_object(nested.content, f"the template `{nested.name}`")
    declared = object_or_empty(template.get("parameters"))
    values = dict(_list_values(nested.name, declared, given))
    outputs = {
        name: str(object_or_empty(body).get("type", "string")).lower()
        for name, body in object_or_empty(template.get("outputs")).items()
    }
    return NestedPlan(nested, resource, template, values, outputs)


def _list_values(
    name: str, declared: JsonObject, given: Mapping[str, str]
) -> Iterator[tuple[str, Json]]:
    for key in given:
        if key not in declared:
            message = f"the template `{name}` has no parameter `{key}`"
            raise NestedError(message)
    for key, body in declared.items():
        facts = object_or_empty(body)
        if key in given:
            yield key, _convert(name, key, str(facts.get("type", "string")), given[key])
        elif "defaultValue" not in facts:
            message = f"the template `{name}` needs a value for its parameter `{key}`"
            raise NestedError(message)


def _convert(name: str, key: str, type_: str, text: str) -> Json:
    """Return a rendered text as what a parameter takes."""
    low = type_.lower()
    if low in ("string", "securestring"):
        return text
    try:
        value: Json = json.loads(text)
    except ValueError as error:
        message = f"the template `{name}` wants `{key}` as {type_}, and not `{text[:60]}`"
        raise NestedError(message) from error
    return value


def _write_link(address: str, given: Mapping[str, str]) -> JsonObject:
    """Return a template that deploys the one at an address."""
    linked: JsonObject = {
        "type": "Microsoft.Resources/deployments",
        "apiVersion": "2024-03-01",
        "name": LINKED,
        "properties": {
            "mode": "Incremental",
            "templateLink": {"uri": _literal(address)},
            "parameters": {key: {"value": _literal(value)} for key, value in given.items()},
        },
    }
    return {"$schema": SCHEMA, "contentVersion": "1.0.0.0", "resources": [linked]}


def _literal(text: str) -> str:
    return f"[{text}" if text.startswith("[") and text.endswith("]") else text
