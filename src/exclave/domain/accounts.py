"""Orgs and the API tokens of their accounts, as they are stored."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from exclave.domain.identity import AccountId, Grant, OrgId, Role, ScopeKind, TokenId


@dataclass(frozen=True, slots=True)
class Org:
    """A tenant."""

    id: OrgId
    name: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ApiToken:
    """A token of an account, without its hash."""

    org_id: OrgId
    id: TokenId
    account_id: AccountId
    name: str
    prefix: str
    """Its first characters, so that people can tell tokens apart."""
    grants: tuple[Grant, ...]
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None
    last_used_at: datetime | None
    parent_id: TokenId | None
    """The token that it was made with."""
    person_id: AccountId | None
    """With four eyes: the account that it counts as; None: its own."""
    instance_admin: bool | None
    """None for tokens stored before there were instance admins."""


@dataclass(frozen=True, slots=True)
class ListedToken(ApiToken):
    """A token with the names of its account and of the person that it counts as."""

    account: str
    person: str | None


def read_grants(stored: Sequence[Sequence[str]]) -> tuple[Grant, ...]:
    """Return grants from their stored form."""
    return tuple(Grant(Role(role), ScopeKind(scope), on) for role, scope, on in stored)


def write_grants(grants: Sequence[Grant]) -> list[list[str]]:
    """Return the stored form of grants."""
    return [[grant.role, grant.scope, grant.scope_id] for grant in grants]
