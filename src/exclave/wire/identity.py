"""Orgs, accounts, tokens, runners and enrolments over the Control API."""

from datetime import datetime
from typing import Annotated

from pydantic import Field, StringConstraints

from exclave.domain.identity import QueueKind as QueueKind
from exclave.domain.identity import Role as Role
from exclave.domain.identity import ScopeKind as ScopeKind
from exclave.domain.presence import PresenceState as PresenceState
from exclave.wire.model import Id, Name, Reply, Request, Text
from exclave.wire.runner import Stats


class GrantModel(Request):
    """A role and how far it reaches."""

    role: Role
    scope: ScopeKind = ScopeKind.ORG
    scope_id: Annotated[str, StringConstraints(max_length=64)] = ""


class NewOrg(Request):
    """A new tenant; whoever creates it becomes its first admin."""

    name: Name


class OrgReply(Reply):
    """A tenant."""

    id: Id
    name: str
    created_at: datetime
    build_queue_id: Id


class OrgCreated(OrgReply):
    """A new tenant with the first token of its admin, shown once."""

    token: str


class WhoAmI(Reply):
    """Who the token speaks for."""

    org: OrgReply
    account_id: Id
    account: str
    token_id: Id
    grants: list[GrantModel]


class NewToken(Request):
    """An API token for an account of this org; the account is made where it is missing."""

    name: Name
    account: Name
    grants: Annotated[list[GrantModel], Field(min_length=1, max_length=50)]
    expires_in_s: Annotated[float, Field(ge=1, le=366 * 24 * 3600)] = 90 * 24 * 3600.0


class TokenInfo(Reply):
    """An API token without its secret."""

    id: Id
    name: str
    account: str
    prefix: str
    grants: list[GrantModel]
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None
    last_used_at: datetime | None


class TokenCreated(TokenInfo):
    """A new API token; the secret is shown once."""

    token: str


class NewEnrolment(Request):
    """Ask for a one-time token by which a runner joins a queue."""

    queue_id: Id


class EnrolmentCreated(Reply):
    """The one-time token, shown once."""

    id: Id
    queue_id: Id
    token: str
    expires_at: datetime
    runner_url: str


class RunnerReply(Reply):
    """A runner and whether it is there."""

    id: Id
    name: str
    queue_id: Id
    kind: QueueKind
    state: str
    presence: PresenceState
    cause: str
    seen_at: datetime | None
    version: str
    protocol: str
    capabilities: list[str]
    stats: Stats
    running: int
    created_at: datetime


class RevokeRunner(Request):
    """Take a runner's identity away, at once."""

    reason: Annotated[Text, StringConstraints(min_length=3)]


class AuditEntry(Reply):
    """Who did what to which thing, and why."""

    id: Id
    at: datetime
    actor: str
    action: str
    subject: str
    detail: dict[str, str]
