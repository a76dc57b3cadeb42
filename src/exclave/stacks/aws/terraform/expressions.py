"""References as Terraform writes them: `var.x`, `aws_vpc.vpc.id`, and templates in its JSON."""

from collections.abc import Mapping, Sequence

from exclave.base.json_values import Json
from exclave.stacks.aws.references import (
    Attribute,
    Base64,
    Commas,
    Fact,
    Joined,
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
from exclave.stacks.aws.terraform.types import TYPES
from exclave.stacks.naming import write_snake
from exclave.stacks.terraform.text import escape, quote

FACTS = {
    Fact.ACCOUNT: "local.account_id",
    Fact.REGION: "local.region",
    Fact.PARTITION: "local.partition",
    Fact.STACK: '""',
    Fact.DOMAIN: "local.domain",
}
ATTRIBUTES = {
    ("AWS::EC2::EIP", Attribute.ID): "allocation_id",
    ("AWS::EC2::LaunchTemplate", Attribute.ID): "id",
}


def write_value(node: Node) -> Json:
    """Return a value in Terraform's JSON, in which every text is a template."""
    match node:
        case Fact():
            return f"${{{FACTS[node]}}}"
        case str():
            return escape(node)
        case None | bool() | int() | float():
            return node
        case Mapping():
            return {escape(name): write_value(value) for name, value in node.items()}
        case Sequence():
            return [write_value(item) for item in node]
        case Joined(parts):
            return "".join(write_text(part) for part in parts)
        case _:
            return f"${{{write_expression(node)}}}"


def write_text(part: Text) -> str:
    """Return a part of a template."""
    return escape(part) if is_text(part) else f"${{{write_expression(part)}}}"


def write_expression(node: Node) -> str:
    """Return a value as an expression."""
    match node:
        case Fact():
            return FACTS[node]
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
            field = ATTRIBUTES.get((resource.type, attribute), attribute.value)
            return read_attribute(resource, field)
        case Joined(parts):
            return '"' + "".join(_write_quoted(part) for part in parts) + '"'
        case Commas(items):
            return f'join(",", [{", ".join(write_expression(item) for item in items)}])'
        case Base64(text):
            return f"base64encode({_write_as_text(text)})"
        case Native(expression):
            return str(expression)
        case When(condition, then, otherwise):
            yes, no = write_expression(then), write_expression(otherwise)
            if isinstance(otherwise, ParameterRef) and otherwise.kind is ParameterKind.LIST:
                no = _write_as_text(otherwise)
            return f"{write_condition(condition)} ? {yes} : {no}"
        case _:
            return f'"{quote(str(node))}"'


def _write_as_text(text: Text) -> str:
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
    return f"{'var' if name.startswith('Enable') else 'local'}.{_name_condition(name)}"


def _name_condition(name: str) -> str:
    return "runner_enabled" if name == "Enabled" else write_snake(name)


def read_attribute(resource: Resource, attribute: str) -> str:
    """Return an attribute of a resource, null where it does not exist."""
    address = write_address(resource)
    return f"one({address}[*].{attribute})" if resource.condition else f"{address}.{attribute}"


def write_address(resource: Resource) -> str:
    """Return the address of a resource."""
    return f"{TYPES[resource.type]}.{write_snake(resource.name)}"


def write_variable(parameter: str) -> str:
    """Return the variable of a parameter."""
    return write_snake(parameter.replace("GiB", "Gib"))


def _write_quoted(part: Text) -> str:
    return quote(part) if is_text(part) else f"${{{write_expression(part)}}}"
