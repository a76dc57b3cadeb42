"""References as templates of Azure Resource Manager write them: `[parameters('x')]`."""

from collections.abc import Mapping, Sequence

from exclave.base.json_values import Json
from exclave.stacks.azure.references import (
    Attribute,
    Base64,
    Before,
    Child,
    Fact,
    Guid,
    Joined,
    LastPart,
    LastParts,
    Native,
    Node,
    ParameterKind,
    ParameterRef,
    Resource,
    ResourceRef,
    Text,
    When,
)
from exclave.stacks.azure.resources import IDENTITY

IDENTITIES = "2024-11-30"
FACTS = {
    Fact.SUBSCRIPTION: "subscription().subscriptionId",
    Fact.TENANT: "subscription().tenantId",
    Fact.GROUP_ID: "resourceGroup().id",
    Fact.GROUP: "resourceGroup().name",
    Fact.GROUP_LOCATION: "resourceGroup().location",
    Fact.LOCATION: "variables('location')",
    Fact.RUNNER_VAULT: "variables('runnerVault')",
    Fact.SECRET_VAULT: "variables('secretVault')",
    Fact.REGISTRY: "variables('registry')",
    Fact.VAULT_DOMAIN: "environment().suffixes.keyvaultDns",
    Fact.REGISTRY_DOMAIN: "environment().suffixes.acrLoginServer",
}
_RUNTIME = (Attribute.CLIENT, Attribute.PRINCIPAL)


def write_value(node: Node) -> Json:
    """Return a value in the JSON of a template, in which texts in brackets are expressions."""
    match node:
        case Fact():
            return bracket(FACTS[node])
        case str():
            return escape(node)
        case None | bool() | int() | float():
            return node
        case Mapping():
            return {escape(name): write_value(value) for name, value in node.items()}
        case Sequence():
            return [write_value(item) for item in node]
        case _:
            return bracket(write_expression(node))


def escape(text: str) -> str:
    """Return a text that is no expression, whatever it begins and ends with."""
    return f"[{text}" if text.startswith("[") and text.endswith("]") else text


def write_words(text: str) -> str:
    """Return a text for people to read, in a place where escapes may not be understood."""
    return f"{text} " if escape(text) != text else text


def bracket(expression: str) -> str:
    """Return an expression as a value."""
    return f"[{expression}]"


def quote(text: str) -> str:
    """Return a text for within an expression."""
    return "'" + text.replace("'", "''") + "'"


def write_expression(node: Node) -> str:
    """Return a value as an expression."""
    match node:
        case Fact():
            return FACTS[node]
        case str():
            return quote(node)
        case None:
            return "null()"
        case bool():
            return f"{str(node).lower()}()"
        case int() | float():
            return str(node)
        case Mapping():
            return write_object({key: write_expression(value) for key, value in node.items()})
        case Sequence():
            return f"createArray({', '.join(write_expression(item) for item in node)})"
        case _:
            return _write_reference(node)


def _write_reference(node: Text) -> str:
    match node:
        case ParameterRef(name):
            return f"parameters({quote(name)})"
        case ResourceRef(resource, attribute):
            return _write_attribute(resource, attribute)
        case Child(resource, kind, name):
            return write_id(resource, kind, name)
        case Joined(parts):
            return f"concat({', '.join(write_expression(part) for part in parts)})"
        case Guid(seed):
            return f"guid(resourceGroup().id, {quote(seed)})"
        case Base64(text):
            return f"base64({write_as_text(text)})"
        case Native(expression):
            return expression
        case When(condition, then, otherwise):
            yes, no = write_expression(then), write_expression(otherwise)
            return f"if({write_condition(condition)}, {yes}, {no})"
        case _:
            return _write_part(node)


def _write_part(node: Text) -> str:
    match node:
        case Before(text, mark):
            return f"first(split({write_expression(text)}, {quote(mark)}))"
        case LastPart(path):
            return f"last(split({write_expression(path)}, '/'))"
        case LastParts(paths):
            last = "lambda('id', last(split(lambdaVariables('id'), '/')))"
            return f"join(map(split({write_expression(paths)}, ','), {last}), ',')"
        case _:
            raise AssertionError(node)


def _write_attribute(resource: Resource, attribute: Attribute) -> str:
    match attribute:
        case Attribute.ID:
            return write_id(resource)
        case Attribute.NAME:
            return write_expression(resource.title[-1])
        case Attribute.CLIENT:
            return f"{_refer(resource)}.clientId"
        case Attribute.PRINCIPAL:
            return f"{_refer(resource)}.principalId"


def _refer(resource: Resource) -> str:
    return f"reference({write_id(resource)}, {quote(IDENTITIES)})"


def write_id(resource: Resource, kind: str = "", name: str = "") -> str:
    """Return the id of a resource, or of a part of it."""
    type_ = f"{resource.type}/{kind}" if kind else resource.type
    names = [*(write_expression(part) for part in resource.title), *([quote(name)] if name else [])]
    return f"resourceId({', '.join([quote(type_), *names])})"


def write_title(resource: Resource) -> Json:
    """Return the name of a resource, with the names of those that it is a part of before it."""
    if len(resource.title) == 1:
        return write_value(resource.title[0])
    names = [write_expression(part) for part in resource.title]
    return bracket(
        f"format('{'/'.join(f'{{{n}}}' for n in range(len(names)))}', {', '.join(names)})"
    )


def write_as_text(text: Node) -> str:
    """Return a reference as the text that Terraform makes of it too."""
    match text:
        case ParameterRef(_, ParameterKind.FLAG):
            return f"toLower(string({write_expression(text)}))"
        case ParameterRef(_, ParameterKind.NUMBER):
            return f"string({write_expression(text)})"
        case _:
            return write_expression(text)


def write_text_value(node: Node) -> Json:
    """Return a tree in which every reference is a text.

    Where the name of an entry looks like an expression, the whole is one, so that it is none.
    """
    match node:
        case Mapping() if any(escape(name) != name for name in node):
            return bracket(write_late(node))
        case Mapping():
            return {name: write_text_value(value) for name, value in node.items()}
        case ParameterRef():
            return bracket(write_as_text(node))
        case _:
            return write_value(node)


def write_late(node: Node) -> str:
    """Return a tree as an expression in which every reference is a text."""
    if isinstance(node, Mapping):
        return write_object({name: write_late(value) for name, value in node.items()})
    return write_as_text(node)


def write_object(entries: Mapping[str, str]) -> str:
    """Return an object of expressions as an expression."""
    pairs = (f"{quote(name)}, {value}" for name, value in entries.items())
    return f"createObject({', '.join(pairs)})"


def write_condition(name: str) -> str:
    """Return a condition; that of a role is its own parameter."""
    if name.startswith("enable"):
        return f"parameters({quote(name)})"
    return f"variables({quote(name[:1].lower() + name[1:])})"


def write_conditions(names: Sequence[str]) -> str:
    """Return what is true if all conditions are."""
    conditions = [write_condition(name) for name in names]
    return conditions[0] if len(conditions) == 1 else f"and({', '.join(conditions)})"


def is_late(node: Node) -> bool:
    """Return whether a value is known only when what it refers to is there."""
    match node:
        case ResourceRef(resource, attribute):
            return resource.type == IDENTITY and attribute in _RUNTIME
        case Base64(text):
            return is_late(text)
        case Native():
            return True
        case Mapping():
            return any(is_late(value) for value in node.values())
        case _:
            return False
