"""Queries for what an API token made: other tokens, enrolments, registry tokens, Stack codes."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import CTE, ColumnElement, Table, delete, select, update

from exclave.domain.identity import InstallId, OrgId, QueueId, TokenId
from exclave.domain.registry_tokens import RegistryToken
from exclave.domain.runners import Runner, RunnerState
from exclave.storage.engine.database import Tx
from exclave.storage.tables.identity import api_tokens
from exclave.storage.tables.registry import registry_tokens
from exclave.storage.tables.runners import enrolments, runners
from exclave.storage.tables.stacks import stack_codes


class MadeToken(NamedTuple):
    """An API token that was made with another."""

    id: TokenId
    name: str
    expires_at: datetime


class MadeEnrolment(NamedTuple):
    """An enrolment token."""

    id: str
    queue_id: QueueId


class MadeCode(NamedTuple):
    """A Stack code."""

    id: str
    install_id: InstallId
    expires_at: datetime


def hold_token(tx: Tx, org: OrgId, token: TokenId) -> bool:
    """Keep a token from being revoked until the commit; False if it is not valid any more.

    What a token makes is stored under this lock. So a revocation either comes first, and the token
    makes nothing more, or it comes later and finds what was made.
    """
    valid = (api_tokens.c.revoked_at.is_(None), api_tokens.c.expires_at > tx.now)
    mine = select(api_tokens.c.id).where(api_tokens.c.org_id == org, api_tokens.c.id == token)
    return tx.first(mine.where(*valid).with_for_update(read=True)) is not None


def revoke_made_tokens(tx: Tx, org: OrgId, token: TokenId) -> Sequence[MadeToken]:
    """Revoke all tokens that a token made, and those that these made; return the valid ones.

    Again until nothing is left: a token that was about to make another one held its own row (see
    `hold_token`), and what it made can be seen only after that row was waited for.
    """
    family = _draw_family(org, token)
    unrevoked = (
        api_tokens.c.org_id == org,
        api_tokens.c.id != token,
        api_tokens.c.id.in_(select(family.c.id)),
        api_tokens.c.revoked_at.is_(None),
    )
    revoke = update(api_tokens).where(*unrevoked).values(revoked_at=tx.now)
    revoked: list[MadeToken] = []
    while rows := tx.all(revoke.returning(*_TOKEN), MadeToken):
        revoked += rows
    return [row for row in revoked if row.expires_at > tx.now]


def list_made_tokens(tx: Tx, org: OrgId, token: TokenId) -> Sequence[MadeToken]:
    """List the valid tokens that a token made, and those that these made."""
    family = _draw_family(org, token)
    valid = (api_tokens.c.revoked_at.is_(None), api_tokens.c.expires_at > tx.now)
    mine = (api_tokens.c.org_id == org, api_tokens.c.id != token)
    made = api_tokens.c.id.in_(select(family.c.id))
    query = select(*_TOKEN).where(*mine, made, *valid).order_by(api_tokens.c.id)
    return tx.all(query, MadeToken)


def void_made_enrolments(tx: Tx, org: OrgId, token: TokenId) -> Sequence[MadeEnrolment]:
    """Make the unspent enrolment tokens of a token and its family void; return them."""
    where = _made_by(enrolments, org, token), *_unspent(tx)
    voided = update(enrolments).where(*where).values(expires_at=tx.now)
    return tx.all(voided.returning(*_ENROLMENT), MadeEnrolment)


def list_made_enrolments(tx: Tx, org: OrgId, token: TokenId) -> Sequence[MadeEnrolment]:
    """List the unspent enrolment tokens of a token and its family."""
    where = _made_by(enrolments, org, token), *_unspent(tx)
    return tx.all(select(*_ENROLMENT).where(*where), MadeEnrolment)


def drop_made_registry_tokens(tx: Tx, org: OrgId, token: TokenId) -> Sequence[RegistryToken]:
    """Delete the registry tokens of a token and its family; return those that were good."""
    made = _made_by(registry_tokens, org, token)
    dropped = delete(registry_tokens).where(made).returning(*registry_tokens.c)
    rows = tx.all(dropped, RegistryToken)
    return [row for row in rows if row.expires_at > tx.now]


def list_made_registry_tokens(tx: Tx, org: OrgId, token: TokenId) -> Sequence[RegistryToken]:
    """List the registry tokens of a token and its family that are still good."""
    made = _made_by(registry_tokens, org, token)
    query = select(registry_tokens).where(made, registry_tokens.c.expires_at > tx.now)
    return tx.all(query, RegistryToken)


def drop_made_codes(tx: Tx, org: OrgId, token: TokenId) -> Sequence[MadeCode]:
    """Delete the Stack codes of a token and its family; return those that were good."""
    made = _made_by(stack_codes, org, token)
    rows = tx.all(delete(stack_codes).where(made).returning(*_CODE), MadeCode)
    return [row for row in rows if row.expires_at > tx.now]


def list_made_codes(tx: Tx, org: OrgId, token: TokenId) -> Sequence[MadeCode]:
    """List the Stack codes of a token and its family that are still good."""
    made = _made_by(stack_codes, org, token)
    return tx.all(select(*_CODE).where(made, stack_codes.c.expires_at > tx.now), MadeCode)


def list_made_runners(tx: Tx, org: OrgId, token: TokenId) -> Sequence[Runner]:
    """List the active runners that joined by an enrolment token of a token and its family."""
    joined = enrolments.join(
        runners,
        (runners.c.org_id == enrolments.c.org_id) & (runners.c.id == enrolments.c.runner_id),
    )
    made = (
        select(*(runners.c[name] for name in Runner._fields))
        .select_from(joined)
        .where(_made_by(enrolments, org, token), runners.c.state == RunnerState.ACTIVE)
        .order_by(runners.c.id)
    )
    return tx.all(made, Runner)


_TOKEN = (api_tokens.c.id, api_tokens.c.name, api_tokens.c.expires_at)
_ENROLMENT = (enrolments.c.id, enrolments.c.queue_id)
_CODE = (stack_codes.c.id, stack_codes.c.install_id, stack_codes.c.expires_at)


def _draw_family(org: OrgId, token: TokenId) -> CTE:
    """List a token and all its descendants, also through revoked ones."""
    root = select(api_tokens.c.id).where(api_tokens.c.org_id == org, api_tokens.c.id == token)
    family = root.cte("family", recursive=True)
    child = select(api_tokens.c.id).where(
        api_tokens.c.org_id == org, api_tokens.c.parent_id == family.c.id
    )
    return family.union(child)


def _made_by(table: Table, org: OrgId, token: TokenId) -> ColumnElement[bool]:
    family = _draw_family(org, token)
    return (table.c.org_id == org) & table.c.parent_id.in_(select(family.c.id))


def _unspent(tx: Tx) -> tuple[ColumnElement[bool], ...]:
    return (enrolments.c.used_at.is_(None), enrolments.c.expires_at > tx.now)
