"""Credentials of registry clients: create, list without their secrets, revoke."""

from datetime import timedelta

from exclave.base.digests import hash_token
from exclave.base.errors import NotFound
from exclave.control.access import hold_token, require
from exclave.control.audit import record
from exclave.control.deps import Deps
from exclave.control.pagination import clamp, make_page
from exclave.control.registry.access import REGISTRY_TOKEN, USERNAME
from exclave.domain.identity import Right, User
from exclave.domain.registry_tokens import ID_PREFIX, RegistryToken, name_registry_token
from exclave.storage import registry_tokens
from exclave.storage.engine.database import Tx
from exclave.wire.model import Page
from exclave.wire.registry import NewRegistryToken, RegistryTokenCreated, RegistryTokenInfo


async def create_registry_token(
    deps: Deps, user: User, body: NewRegistryToken
) -> RegistryTokenCreated:
    """Create a short-lived credential for a registry client; its secret is returned only here."""
    require(user, Right.ADMINISTER if body.push else Right.OPERATE)

    def create(tx: Tx) -> RegistryTokenCreated:
        hold_token(tx, user)
        secret = deps.ids.token(REGISTRY_TOKEN)
        expires = tx.now + timedelta(minutes=body.minutes)
        hashed = hash_token(secret)
        registry_tokens.add_registry_token(
            tx,
            user.org,
            hashed=hashed,
            repository=body.repository,
            push=body.push,
            by=user.name,
            parent=user.token,
            expires_at=expires,
        )
        record(
            tx,
            deps,
            user.org,
            user.name,
            "registry_token_created",
            body.repository,
            push=str(body.push).lower(),
            minutes=str(body.minutes),
            id=name_registry_token(hashed),
        )
        return RegistryTokenCreated(
            id=name_registry_token(hashed),
            url=deps.runner_url,
            repository=f"{user.org}/{body.repository}",
            push=body.push,
            username=USERNAME,
            password=secret,
            expires_at=expires,
        )

    return await deps.db.write(create)


async def list_registry_tokens(
    deps: Deps, user: User, cursor: str, limit: int
) -> Page[RegistryTokenInfo]:
    """List the valid registry tokens; their secrets are not stored."""
    require(user, Right.ADMINISTER)
    wanted = clamp(limit)
    after = cursor.removeprefix(ID_PREFIX)
    rows = await deps.db.read(
        lambda tx: registry_tokens.list_registry_tokens(tx, user.org, after, wanted + 1)
    )
    return make_page(rows, wanted, _show)


async def revoke_registry_token(deps: Deps, user: User, token: str) -> None:
    """Revoke a registry token, at once and on every server."""
    require(user, Right.ADMINISTER)

    def revoke(tx: Tx) -> None:
        start = token.removeprefix(ID_PREFIX)
        if not token.startswith(ID_PREFIX) or not registry_tokens.drop_registry_token(
            tx, user.org, start
        ):
            raise NotFound("there is no such registry token")
        record(tx, deps, user.org, user.name, "registry_token_revoked", token)

    await deps.db.write(revoke)


def _show(row: RegistryToken) -> RegistryTokenInfo:
    return RegistryTokenInfo(
        id=row.id,
        repository=row.repository,
        push=row.push,
        created_by=row.created_by,
        created_at=row.created_at,
        expires_at=row.expires_at,
        made_with=row.parent_id,
    )
