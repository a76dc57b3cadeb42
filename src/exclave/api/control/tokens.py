"""API tokens."""

from exclave.api.credentials import DepsOf, UserOf
from exclave.api.idempotency import idempotent
from exclave.api.ids import TokenOf
from exclave.api.queries import PageOf, RevokeOf
from exclave.api.routes import UserRoute, make_router
from exclave.control import four_eyes
from exclave.control.orgs import accounts, token_revocation
from exclave.control.orgs.token_revocation import RevokeWish
from exclave.wire.identity import NewToken, TokenCreated, TokenInfo, TokenRevoked
from exclave.wire.model import Page

router = make_router("/v1/tokens", "tokens", UserRoute)


@router.get("")
async def list_tokens(page: PageOf, user: UserOf, deps: DepsOf) -> Page[TokenInfo]:
    """List the org's tokens, without their secrets."""
    return await accounts.list_tokens(deps, user, page.cursor, page.limit)


@router.post("", status_code=201)
@idempotent(secret=True)
async def create_token(body: NewToken, user: UserOf, deps: DepsOf) -> TokenCreated:
    """Create a token. The reply holds its secret, which is shown once."""
    return await accounts.create_token(deps, user, body)


@router.put("/{token}/confirmed", status_code=204)
async def confirm_token(token: TokenOf, user: UserOf, deps: DepsOf) -> None:
    """Confirm, as an admin other than its creator, that a token belongs to another person."""
    await four_eyes.confirm_token(deps, user, token)


@router.delete("/{token}")
async def revoke_token(token: TokenOf, query: RevokeOf, user: UserOf, deps: DepsOf) -> TokenRevoked:
    """Revoke a token at once; with `cascade`, also everything that was created with it."""
    body = RevokeWish(cascade=query.cascade, runners=query.runners, dry_run=query.dry_run)
    return await token_revocation.revoke_token(deps, user, token, body)
