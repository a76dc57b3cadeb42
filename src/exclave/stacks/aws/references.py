"""Values that are known only when the Stack is applied, before any template language.

What both forms share (policies, the document, the boot script) is written with these, and each
form translates them into its own expressions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias, TypeGuard

from exclave.base.json_values import Json
from exclave.stacks.parameter_kinds import ParameterKind as ParameterKind


class Fact(StrEnum):
    """What AWS says about the place where the Stack is applied."""

    ACCOUNT = "account_id"
    REGION = "region"
    PARTITION = "partition"
    STACK = "stack_id"
    """The ARN of the CloudFormation stack; empty in Terraform."""
    DOMAIN = "domain"
    """The domain of AWS's own services there, such as `amazonaws.com`."""


class Attribute(StrEnum):
    """By what a resource is referred to."""

    ID = "id"
    ARN = "arn"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource of the Stack; `type` is that of CloudFormation, `name` its logical name there."""

    type: str
    name: str
    condition: str = ""
    """The condition under which it exists; empty if it always does."""


@dataclass(frozen=True, slots=True)
class ParameterRef:
    """What the customer filled in."""

    name: str
    kind: ParameterKind = ParameterKind.TEXT


@dataclass(frozen=True, slots=True)
class ResourceRef:
    """Something that a resource is known by once it exists."""

    resource: Resource
    attribute: Attribute = Attribute.ID


@dataclass(frozen=True, slots=True)
class Joined:
    """A text with references in it; the texts between them are data of the vendor or ours."""

    parts: tuple["Text", ...]


@dataclass(frozen=True, slots=True)
class Commas:
    """The texts of several values with commas between them."""

    items: tuple["Text", ...]


@dataclass(frozen=True, slots=True)
class Base64:
    """A text in base64, so that nothing in it can break the text around it."""

    text: "Text"


@dataclass(frozen=True, slots=True)
class Native:
    """An expression in the language of the form that it is written in."""

    expression: Json


@dataclass(frozen=True, slots=True)
class When:
    """One of two values by a condition; without a second one, the entry is left out."""

    condition: str
    then: "Node"
    otherwise: "Node" = None


Text: TypeAlias = str | Fact | ParameterRef | ResourceRef | Joined | Commas | Base64 | Native | When
"""What becomes a text."""
Node: TypeAlias = "bool | int | float | Text | Sequence[Node] | Mapping[str, Node] | None"
"""A JSON value with references in it."""


def is_text(part: "Text") -> TypeGuard[str]:
    """Return whether a part is plain text, and no fact that happens to be one."""
    return isinstance(part, str) and not isinstance(part, Fact)


def join_text(*parts: Text) -> Joined:
    """Return a text made of texts and references."""
    return Joined(parts)
