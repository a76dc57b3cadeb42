"""References as Terraform writes them: `var.x`, `azurerm_key_vault.x.id`, templates in its JSON."""

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
    is_text,
)
from exclave.stacks.azure.resources import DEFINITION, TWINS
from exclave.stacks.naming import write_snake
from exclave.stacks.terraform.text import escape, quote


def write_value(node: Node) -> Json:
    """Return a value in Terraform's JSON, in which every text is a template."""
    match node:
        case Fact():
            return f"${{{write_fact(node)}}}"
        case str():
            return escape(node)
        case None | bool() | int() | float():
            return node
        case Mapping():
            return {escape(name): write_value(value) for name, value in node.items()}
        case Sequence():
            return [write_value(item) for item in node]
        case Joined(parts):
            return "".join(_write_text(part) for part in parts)
        case _:
            return f"${{{write_expression(node)}}}"


def write_fact(fact: Fact) -> str:
    """Return a fact, which is a local value."""
    return f"local.{fact.value}"


def write_expression(node: Node) -> str:
    """Return a value as an expression."""
    match node:
        case Fact():
            return write_fact(node)
        case str():
            return f'"{quote(node)}"'
        case None:
            return "null"
        case bool():
            return "true" if node else "false"
        case int() | float():
            return str(node)
        case Mapping():
            entries = (f"{write_expression(k)} = {write_expression(v)}" for k, v in node.items())
            return "{" + ", ".join(entries) + "}"
        case Sequence():
            return "[" + ", ".join(write_expression(item) for item in node) + "]"
        case _:
            return _write_reference(node)


def _write_reference(node: Text) -> str:
    match node:
        case ParameterRef(name):
            return f"var.{write_variable(name)}"
        case ResourceRef(resource, attribute):
            return read_attribute(resource, attribute.value)
        case Child(resource, _, _, twin):
            return f"one({twin}[*].id)" if resource.conditions else f"{twin}.id"
        case Joined(parts):
            return '"' + "".join(_write_quoted(part) for part in parts) + '"'
        case Guid(seed):
            return f'uuidv5("url", "${{local.group_id}}/{quote(seed)}")'
        case Base64(text):
            return f"base64encode({_write_as_text(text)})"
        case Native(expression):
            return expression
        case When(condition, then, otherwise):
            yes, no = write_expression(then), _write_as_list_text(otherwise)
            return f"{write_condition(condition)} ? {yes} : {no}"
        case _:
            return _write_part(node)


def _write_part(node: Text) -> str:
    match node:
        case Before(text, mark):
            return f'split("{quote(mark)}", {write_expression(text)})[0]'
        case LastPart(path):
            return f"basename({write_expression(path)})"
        case LastParts(paths):
            return f'join(",", [for id in {write_expression(paths)} : basename(id)])'
        case _:
            raise AssertionError(node)


def _write_as_list_text(node: Node) -> str:
    """Return a value; a list of the customer's with commas between."""
    is_list = isinstance(node, ParameterRef) and node.kind is ParameterKind.LIST
    return _write_as_text(node) if is_list else write_expression(node)


def _write_as_text(text: Node) -> str:
    """Return a text as an expression, whatever the type of its variable is."""
    match text:
        case ParameterRef(name, ParameterKind.LIST):
            return f'join(",", var.{write_variable(name)})'
        case ParameterRef(name, ParameterKind.FLAG | ParameterKind.NUMBER):
            return f"tostring(var.{write_variable(name)})"
        case _:
            return write_expression(text)


def write_document_text(node: Node) -> Json:
    """Return a tree in which every reference is a text, for a document in JSON."""
    match node:
        case Mapping():
            return {escape(name): write_document_text(value) for name, value in node.items()}
        case ParameterRef():
            return f"${{{_write_as_text(node)}}}"
        case _:
            return write_value(node)


def write_condition(name: str) -> str:
    """Return a condition; that of a role is its own variable."""
    snake = write_snake(name)
    return f"var.{snake}" if name.startswith("enable") else f"local.{snake}"


def write_conditions(names: Sequence[str]) -> str:
    """Return what is true if all conditions are."""
    return " && ".join(write_condition(name) for name in names)


def read_attribute(resource: Resource, attribute: str) -> str:
    """Return an attribute of a resource, null where it does not exist."""
    address = write_address(resource)
    if resource.type == DEFINITION and attribute == Attribute.ID:
        attribute = "role_definition_resource_id"
    return f"one({address}[*].{attribute})" if resource.conditions else f"{address}.{attribute}"


def write_address(resource: Resource) -> str:
    """Return the address of a resource."""
    return f"{TWINS[resource.type]}.{write_snake(resource.name)}"


def write_variable(parameter: str) -> str:
    """Return the variable of a parameter."""
    return write_snake(parameter.replace("GiB", "Gib"))


def _write_text(part: Text) -> str:
    return escape(part) if is_text(part) else f"${{{write_expression(part)}}}"


def _write_quoted(part: Text) -> str:
    return quote(part) if is_text(part) else f"${{{write_expression(part)}}}"
