"""Callers (users with roles, runners with a queue) and the rights of each role."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NewType

OrgId = NewType("OrgId", str)
AccountId = NewType("AccountId", str)
TokenId = NewType("TokenId", str)
QueueId = NewType("QueueId", str)
InstallId = NewType("InstallId", str)
RunnerId = NewType("RunnerId", str)


class Role(StrEnum):
    """What an account may do; each role is a fixed set of rights."""

    ADMIN = "admin"
    OPERATOR = "operator"
    APPROVER = "approver"
    VIEWER = "viewer"


class Right(StrEnum):
    """A right that a route requires."""

    READ = "read"
    OPERATE = "operate"
    APPROVE = "approve"
    ADMINISTER = "administer"


RIGHTS: dict[Role, frozenset[Right]] = {
    Role.ADMIN: frozenset(Right),
    Role.OPERATOR: frozenset({Right.READ, Right.OPERATE}),
    Role.APPROVER: frozenset({Right.READ, Right.APPROVE}),
    Role.VIEWER: frozenset({Right.READ}),
}


class ScopeKind(StrEnum):
    """The scope of a grant."""

    ORG = "org"
    APP = "app"
    INSTALL = "install"


@dataclass(frozen=True, slots=True)
class Grant:
    """A role on the whole org, on one app or on one install."""

    role: Role
    scope: ScopeKind = ScopeKind.ORG
    scope_id: str = ""


@dataclass(frozen=True, slots=True)
class User:
    """An account, authenticated by one of its API tokens."""

    org: OrgId
    account: AccountId
    name: str
    token: TokenId
    grants: tuple[Grant, ...]
    acts_as: AccountId | None = None
    """The account that the token counts as for the four-eyes rule; None: the account itself."""
    instance_admin: bool = False
    """May create orgs; no role of an org includes this."""
    four_eyes: bool = False
    """Whether the org asked for two people when the token was looked up."""

    @property
    def person(self) -> AccountId:
        """The person behind the token."""
        return self.acts_as or self.account


class QueueKind(StrEnum):
    """The kind of a queue: whose jobs it holds."""

    INSTALL = "install"
    BUILD = "build"


@dataclass(frozen=True, slots=True)
class RunnerIdentity:
    """A runner, authenticated by its access token; it has access to its own queue only."""

    org: OrgId
    runner: RunnerId
    queue: QueueId
    kind: QueueKind
    name: str
    unconfirmed: int | None = None
    """The generation of its token, as long as nobody has noted that the token arrived."""


def allows(user: User, right: Right, install: str | None = None, app: str | None = None) -> bool:
    """Return whether any grant of the user gives this right on the org, the app or the install."""
    return any(
        right in RIGHTS[grant.role] and _covers(grant, install, app) for grant in user.grants
    )


def list_granted(user: User, scope: ScopeKind = ScopeKind.INSTALL) -> list[str]:
    """Return the installs, or the apps, that the user has individual grants for."""
    return [grant.scope_id for grant in user.grants if grant.scope is scope]


def _covers(grant: Grant, install: str | None, app: str | None) -> bool:
    match grant.scope:
        case ScopeKind.ORG:
            return True
        case ScopeKind.INSTALL:
            return install is not None and grant.scope_id == install
        case ScopeKind.APP:
            return app is not None and grant.scope_id == app
