"""Values that are known only when the Stack is applied, before any template language.

What both forms share (names, the document, the boot script) is written with these, and each form
translates them into its own expressions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias, TypeGuard

from exclave.base.json_values import Json
from exclave.stacks.parameter_kinds import ParameterKind as ParameterKind


class Fact(StrEnum):
    """What Azure says about the place where the Stack is applied, and names made of that."""

    SUBSCRIPTION = "subscription_id"
    TENANT = "tenant_id"
    GROUP_ID = "group_id"
    GROUP = "group_name"
    GROUP_LOCATION = "group_location"
    LOCATION = "location"
    RUNNER_VAULT = "runner_vault"
    SECRET_VAULT = "secret_vault"  # noqa: S105 - the name of a fact
    REGISTRY = "registry"
    VAULT_DOMAIN = "vault_domain"
    """What the names of vaults end with, such as `.vault.azure.net`."""
    REGISTRY_DOMAIN = "registry_domain"


class Attribute(StrEnum):
    """By what a resource is referred to."""

    ID = "id"
    NAME = "name"
    CLIENT = "client_id"
    """Of an identity: by what tokens are asked for."""
    PRINCIPAL = "principal_id"
    """Of an identity: by what rights are given to it."""


@dataclass(frozen=True, slots=True)
class ParameterRef:
    """What the customer filled in."""

    name: str
    kind: ParameterKind = ParameterKind.TEXT


@dataclass(frozen=True, slots=True)
class Joined:
    """A text with references in it; the texts between them are data of the vendor or ours."""

    parts: tuple["Text", ...]


@dataclass(frozen=True, slots=True)
class Guid:
    """An id that is the same each time the Stack is applied to the same resource group."""

    seed: str


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource of the Stack; both forms know it by `name`."""

    type: str
    """As Azure Resource Manager names it."""
    name: str
    title: tuple["Text", ...]
    """Its name in Azure, after the names of those that it is a part of."""
    conditions: tuple[str, ...] = ()
    """All that has to be true for it to exist."""


@dataclass(frozen=True, slots=True)
class ResourceRef:
    """Something that a resource is known by once it exists."""

    resource: Resource
    attribute: Attribute = Attribute.ID


@dataclass(frozen=True, slots=True)
class Child:
    """The id of a part of a resource that is no resource of its own, such as a subnet."""

    resource: Resource
    kind: str
    name: str
    twin: str
    """The resource that it is in Terraform."""


@dataclass(frozen=True, slots=True)
class Base64:
    """A text in base64, so that nothing in it can break the text around it."""

    text: "Text"


@dataclass(frozen=True, slots=True)
class Before:
    """The part of a text before a mark."""

    text: "Text"
    mark: str


@dataclass(frozen=True, slots=True)
class LastPart:
    """The last part of a path."""

    path: "Text"


@dataclass(frozen=True, slots=True)
class LastParts:
    """The last part of each path in a list, with commas between them."""

    paths: ParameterRef


@dataclass(frozen=True, slots=True)
class Native:
    """An expression in the language of the form that it is written in."""

    expression: str


@dataclass(frozen=True, slots=True)
class When:
    """One of two values by a condition; without a second one, it is null."""

    condition: str
    then: "Node"
    otherwise: "Node" = None


Text: TypeAlias = (
    str
    | Fact
    | ParameterRef
    | ResourceRef
    | Child
    | Joined
    | Guid
    | Base64
    | Before
    | LastPart
    | LastParts
    | Native
    | When
)
"""What becomes a text."""
Node: TypeAlias = "bool | int | float | Text | Sequence[Node] | Mapping[str, Node] | None"
"""A JSON value with references in it."""
Body: TypeAlias = Mapping[str, Node]
Plain: TypeAlias = Mapping[str, Json]


def is_text(part: "Text") -> TypeGuard[str]:
    """Return whether a part is plain text, and no fact that happens to be one."""
    return isinstance(part, str) and not isinstance(part, Fact)


def join_text(*parts: Text) -> Joined:
    """Return a text made of texts and references."""
    return Joined(parts)
