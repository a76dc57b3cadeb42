"""Queries for what an API token made: other tokens, enrolments, registry tokens, Stack codes."""

from collections.abc import Sequence

from sqlalchemy import CTE, ColumnElement, Table, delete, select, update

from exclave.domain.identity import OrgId, TokenId
from exclave.storage.engine.database import AnyRow, Tx
from exclave.storage.runners import ACTIVE
from exclave.storage.tables.core import api_tokens, enrolments, runners
from exclave.storage.tables.registry import registry_tokens
from exclave.storage.tables.stacks import stack_codes


def hold_token(tx: Tx, org: OrgId, token: TokenId) -> bool:
    """Keep a token from being revoked until the commit; False if it is not valid any more.

    What a token makes is stored under this lock. So a revocation either comes first, and the token
    makes nothing more, or it comes later and finds what was made.
    """
    valid = (api_tokens.c.revoked_at.is_(None), api_tokens.c.expires_at > tx.now)
    mine = select(api_tokens.c.id).where(api_tokens.c.org_id == org, api_tokens.c.id == token)
    return tx.first(mine.where(*valid).with_for_update(read=True)) is not None


def revoke_made_tokens(tx: Tx, org: OrgId, token: TokenId) -> Sequence[AnyRow]:
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
    revoked: list[AnyRow] = []
    while rows := tx.all(revoke.returning(*_TOKEN)):
        revoked += rows
    return [row for row in revoked if row.expires_at > tx.now]


def list_made_tokens(tx: Tx, org: OrgId, token: TokenId) -> Sequence[AnyRow]:
    """List the valid tokens that a token made, and those that these made."""
    family = _draw_family(org, token)
    valid = (api_tokens.c.revoked_at.is_(None), api_tokens.c.expires_at > tx.now)
    mine = (api_tokens.c.org_id == org, api_tokens.c.id != token)
    made = api_tokens.c.id.in_(select(family.c.id))
    return tx.all(select(*_TOKEN).where(*mine, made, *valid).order_by(api_tokens.c.id))


def void_made_enrolments(tx: Tx, org: OrgId, token: TokenId) -> Sequence[AnyRow]:
    """Make the unspent enrolment tokens of a token and its family void; return them."""
    where = _made_by(enrolments, org, token), *_unspent(tx)
    voided = update(enrolments).where(*where).values(expires_at=tx.now)
    return tx.all(voided.returning(enrolments.c.id, enrolments.c.queue_id))


def list_made_enrolments(tx: Tx, org: OrgId, token: TokenId) -> Sequence[AnyRow]:
    """List the unspent enrolment tokens of a token and its family."""
    where = _made_by(enrolments, org, token), *_unspent(tx)
    return tx.all(select(enrolments.c.id, enrolments.c.queue_id).where(*where))


def drop_made_registry_tokens(tx: Tx, org: OrgId, token: TokenId) -> Sequence[AnyRow]:
    """Delete the registry tokens of a token and its family; return those that were good."""
    made = _made_by(registry_tokens, org, token)
    rows = tx.all(delete(registry_tokens).where(made).returning(*registry_tokens.c))
    return [row for row in rows if row.expires_at > tx.now]


def list_made_registry_tokens(tx: Tx, org: OrgId, token: TokenId) -> Sequence[AnyRow]:
    """List the registry tokens of a token and its family that are still good."""
    made = _made_by(registry_tokens, org, token)
    return tx.all(select(registry_tokens).where(made, registry_tokens.c.expires_at > tx.now))


def drop_made_codes(tx: Tx, org: OrgId, token: TokenId) -> Sequence[AnyRow]:
    """Delete the Stack codes of a token and its family; return those that were good."""
    made = _made_by(stack_codes, org, token)
    rows = tx.all(delete(stack_codes).where(made).returning(*stack_codes.c))
    return [row for row in rows if row.expires_at > tx.now]


def list_made_codes(tx: Tx, org: OrgId, token: TokenId) -> Sequence[AnyRow]:
    """List the Stack codes of a token and its family that are still good."""
    made = _made_by(stack_codes, org, token)
    return tx.all(select(stack_codes).where(made, stack_codes.c.expires_at > tx.now))


def list_made_runners(tx: Tx, org: OrgId, token: TokenId) -> Sequence[AnyRow]:
    """List the active runners that joined by an enrolment token of a token and its family."""
    joined = enrolments.join(
        runners,
        (runners.c.org_id == enrolments.c.org_id) & (runners.c.id == enrolments.c.runner_id),
    )
    made = select(runners).select_from(joined).where(_made_by(enrolments, org, token))
    return tx.all(made.where(runners.c.state == ACTIVE).order_by(runners.c.id))


_TOKEN = (api_tokens.c.id, api_tokens.c.name, api_tokens.c.expires_at)


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
