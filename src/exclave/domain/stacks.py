"""Stacks: the clouds they are for, their states, what the customer fills in, what they report."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import Self

from exclave.base.json_values import JsonObject
from exclave.domain.identity import OrgId

STACK_FILE = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$")
"""The name of a file of a Stack: folders and a last part, none of which begins with a dot."""


class Cloud(StrEnum):
    """Where an app runs, as `runner_type` in its `runner.toml` names it."""

    LOCAL = "local"
    """Any machine of the customer."""
    AWS = "aws"
    AZURE = "azure"
    GCP = "gcp"


class StackState(StrEnum):
    """How far the customer is with a version of an install's Stack."""

    AWAITING = "awaiting"
    """The customer has not run it yet."""
    INCOMPLETE = "incomplete"
    """It runs, and a required input of the customer is missing."""
    ACTIVE = "active"
    REMOVED = "removed"
    """The customer removed it, and its runner gave up its identity."""


@dataclass(frozen=True, slots=True)
class StackVersion:
    """A version of an install's Stack; a config that asks more of the customer makes a new one."""

    id: str
    version: int
    state: StackState
    config_id: str
    outputs: JsonObject
    created_at: datetime
    run_at: datetime | None
    """When its last changed report arrived."""


@dataclass(frozen=True, slots=True)
class StackCode:
    """A code by which a customer fetches the files of a Stack."""

    org: OrgId
    id: str
    install_id: str
    enrolment_id: str
    """The newest enrolment token that the code gave out."""
    created_by: str
    expires_at: datetime
    parent_id: str | None
    """The API token that created it; it is revoked with that token."""
    is_used: bool = False
    """Whether the runner has enrolled: then the code fetches nothing any more."""


@dataclass(frozen=True, slots=True)
class StackSecret:
    """A secret that the app declares and that stays with the customer."""

    name: str
    description: str = ""
    required: bool = False
    auto_generate: bool = False


@dataclass(frozen=True, slots=True)
class StackInput:
    """An input that the customer sets."""

    name: str
    description: str = ""
    type: str = "string"
    default: str | None = None
    required: bool = False
    sensitive: bool = False


@dataclass(frozen=True, slots=True)
class StackTerms:
    """What the app's current config asks of the customer."""

    install_id: str
    install: str
    app: str
    secrets: tuple[StackSecret, ...] = ()
    inputs: tuple[StackInput, ...] = ()


class RoleKind(StrEnum):
    """What a role in the customer's account is for."""

    PROVISION = "provision"
    """Create and change the sandbox, sync secrets."""
    MAINTENANCE = "maintenance"
    """Deploy components, run actions."""
    DEPROVISION = "deprovision"
    """Remove the sandbox."""
    CUSTOM = "custom"
    """What the app names it for."""
    BREAK_GLASS = "break_glass"
    """Emergencies: the customer switches it on, for a time."""


@dataclass(frozen=True, slots=True)
class StackPolicy:
    """One thing that a role may do; a cloud reads the fields that are its own."""

    name: str = ""
    managed: str = ""
    """AWS: the name of a managed policy."""
    document: str = ""
    """AWS: a policy in JSON."""
    gcp_permissions: tuple[str, ...] = ()
    gcp_role: str = ""
    azure_actions: tuple[str, ...] = ()
    azure_roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StackRole:
    """A role that a Stack creates in the customer's account, and that jobs may run with."""

    kind: RoleKind
    name: str
    title: str = ""
    description: str = ""
    policies: tuple[StackPolicy, ...] = ()
    boundary: str = ""
    """AWS: the permissions boundary in JSON."""
    enabled: bool = True
    """Whether it is on until the customer decides otherwise."""


@dataclass(frozen=True, slots=True)
class CloudAccount:
    """The account in a cloud that a Stack is for, and the roles that it creates there."""

    id: str = ""
    """AWS account, Azure subscription or GCP project; empty if any account may apply the Stack."""
    region: str = ""
    """Empty if the customer chooses it."""
    roles: tuple[StackRole, ...] = ()

    def list_roles(self, kind: RoleKind) -> tuple[StackRole, ...]:
        """List the roles of one kind, in the order of the app."""
        return tuple(role for role in self.roles if role.kind is kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class StackFacts:
    """Facts that a Stack reports about the place where it runs; each cloud has a subclass."""

    region: str
    others: Mapping[str, str] = field(default_factory=dict)
    """Facts that this version does not know: a newer runner may report more."""

    @classmethod
    def from_report(cls, reported: Mapping[str, str]) -> Self:
        """Sort reported facts into the fields of this class and into `others`."""
        names = cls._list_names()
        known = {name: text for name, text in reported.items() if name in names}
        others = {name: text for name, text in reported.items() if name not in names}
        return cls(**known, others=others)

    def to_outputs(self) -> dict[str, str]:
        """Return the facts by name, as templates read them; a fact not reported is left out."""
        known = {name: getattr(self, name) for name in self._list_names()}
        return {name: text for name, text in known.items() if text is not None} | {**self.others}

    @classmethod
    def _list_names(cls) -> list[str]:
        return [item.name for item in fields(cls) if item.name != "others"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalFacts(StackFacts):
    """Facts about the machine of a `local` Stack."""

    region: str = "local"
    hostname: str | None = None
    os: str | None = None
    os_version: str | None = None
    arch: str | None = None
    python: str | None = None
    python_path: str | None = None
    folder: str | None = None
    data_folder: str | None = None
    time_zone: str | None = None
    user: str | None = None
    jobs_isolated: str | None = None
