"""Config versions of apps: immutable, split into parts that are compared by their hashes."""

from dataclasses import dataclass
from datetime import datetime
from typing import NotRequired, Protocol, TypedDict

from exclave.base.json_values import JsonObject
from exclave.domain.four_eyes import Author
from exclave.domain.identity import AccountId, OrgId, TokenId


class OutlinedComponent(TypedDict):
    """A component, as far as plans need to know it."""

    name: str
    type: str
    needs: list[str]
    hash: str
    inputs: list[str]
    """The inputs whose change makes it be deployed again."""
    toggleable: bool
    default_enabled: bool


class OutlinedSandbox(TypedDict):
    """The sandbox, as far as plans need to know it."""

    inputs: list[str]
    hash: str


class OutlinedTrigger(TypedDict):
    """What starts an action."""

    type: str
    component: str
    """Empty for triggers that are of no component."""
    cron: str
    """Empty for triggers that are no schedule."""
    index: int | None


class OutlinedAction(TypedDict):
    """An action and its triggers."""

    name: str
    triggers: list[OutlinedTrigger]


class AppOutline(TypedDict):
    """The document that is stored with a version so that plans need not read its parts."""

    components: list[OutlinedComponent]
    order: list[list[str]]
    """The components in groups; those of a group depend on earlier groups only."""
    sandbox: OutlinedSandbox | None
    actions: list[OutlinedAction]
    runbooks: list[str]
    inputs: list[str]
    secrets: list[str]
    cloud: str
    folders: NotRequired[dict[str, str]]
    """The digest of each folder of the app's directory, by path."""


@dataclass(frozen=True, slots=True)
class Config:
    """A version of an app; it never changes."""

    org_id: OrgId
    id: str
    app_id: str
    version: int
    digest: str
    """The digest of the content, the same for versions of equal content."""
    archive: str
    """The blob of the directory that was uploaded."""
    archive_digest: str
    outline: AppOutline
    created_at: datetime
    created_by: str
    by_person: AccountId | None
    """None for versions stored before persons were recorded."""
    by_token: TokenId | None

    @property
    def author(self) -> Author:
        """Who synced it."""
        return Author(self.created_by, self.by_person, self.by_token)


@dataclass(frozen=True, slots=True)
class NewConfig:
    """A version that is about to be stored."""

    id: str
    app_id: str
    version: int
    digest: str
    archive: str
    archive_digest: str
    outline: JsonObject
    author: Author


class HashedPart(Protocol):
    """A part of a version, as far as it is told apart from others."""

    @property
    def section(self) -> str:
        """The kind of thing."""

    @property
    def name(self) -> str:
        """Its name; empty for things of which there is one."""

    @property
    def hash(self) -> str:
        """The name of its content."""


class Part(HashedPart, Protocol):
    """A part of a version with its content."""

    @property
    def value(self) -> JsonObject:
        """Its definition as plain JSON."""


@dataclass(frozen=True, slots=True)
class ConfigPart:
    """A stored part of a version."""

    org_id: OrgId
    config_id: str
    section: str
    name: str
    position: int
    hash: str
    value: JsonObject
