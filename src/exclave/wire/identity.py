"""Orgs, accounts, tokens, runners and enrolments over the Control API."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from exclave.domain.identity import QueueKind as QueueKind
from exclave.domain.identity import Role as Role
from exclave.domain.identity import ScopeKind as ScopeKind
from exclave.domain.presence import PresenceState as PresenceState
from exclave.wire.model import Id, Name, Reply, Request, Text
from exclave.wire.runner import Stats


class GrantModel(Request):
    """A role and its scope."""

    role: Role
    scope: ScopeKind = ScopeKind.ORG
    scope_id: Annotated[str, StringConstraints(max_length=64)] = ""


class NewOrg(Request):
    """A new tenant; the instance admin who creates it becomes its first admin."""

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
    """The account and the org of a token."""

    org: OrgReply
    account_id: Id
    account: str
    token_id: Id
    grants: list[GrantModel]
    instance_admin: bool = False


class NewToken(Request):
    """An API token for an account of this org; the account is created if it is missing."""

    name: Name
    account: Name
    grants: Annotated[list[GrantModel], Field(min_length=1, max_length=50)]
    expires_in_s: Annotated[float, Field(ge=1, le=366 * 24 * 3600)] = 90 * 24 * 3600.0
    instance_admin: bool = False
    """Whether it may create orgs; only an instance admin can grant this."""


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
    instance_admin: bool = False
    made_with: Id | None = None
    """The token that it was created with."""
    counts_as: str | None = None
    """With four eyes: the person whom it counts as until another admin confirms it."""


class TokenCreated(TokenInfo):
    """A new API token; the secret is shown once."""

    token: str


class MadeKind(StrEnum):
    """What can be created with a token and outlives it."""

    TOKEN = "token"  # noqa: S105 - a name
    ENROLMENT = "enrolment"
    REGISTRY_TOKEN = "registry_token"  # noqa: S105 - a name
    STACK_CODE = "stack_code"
    RUNNER = "runner"


class MadeCredential(Reply):
    """A credential that was created with a token.

    `name` is that of the token or runner, else its subject: a queue, a repository, an install.
    """

    kind: MadeKind
    id: str
    name: str


class MadeList(Reply):
    """Counts by kind, and the first 200 credentials."""

    counts: dict[str, int]
    items: list[MadeCredential]


class TokenRevoked(Reply):
    """A token that was revoked (or would be), what was revoked with it, and what stays valid."""

    id: Id
    name: str
    dry_run: bool
    revoked: MadeList
    still_valid: MadeList


class SetFourEyes(Request):
    """Whether every change needs two people."""

    on: bool


class FourEyesReply(Reply):
    """Whether every change needs two people, and who requested to turn that off."""

    on: bool
    off_requested_by: str | None = None
    """Who requested to turn it off; another admin has to confirm."""
    off_request_expires_at: datetime | None = None
    admins: list[str]
    """The accounts that can turn it on or off."""


class NewEnrolment(Request):
    """A request for a one-time token with which a runner joins a queue."""

    queue_id: Id


class EnrolmentCreated(Reply):
    """The one-time token, shown once."""

    id: Id
    queue_id: Id
    token: str
    expires_at: datetime
    runner_url: str


class RunnerReply(Reply):
    """A runner and its presence."""

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
    alarm: str = ""
    """A finding that an admin should investigate; the runner keeps working."""
    alarm_at: datetime | None = None


class RevokeRunner(Request):
    """Revoke a runner, at once."""

    reason: Annotated[Text, StringConstraints(min_length=3)]


class AuditEntry(Reply):
    """An entry of the audit log: who did what to which object, and why."""

    id: Id
    at: datetime
    actor: str
    action: str
    subject: str
    detail: dict[str, str]
