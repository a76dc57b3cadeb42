"""API tokens."""

from exclave.api.credentials import DepsOf, UserOf
from exclave.api.ids import TokenOf
from exclave.api.queries import PageOf
from exclave.api.repeats import OnceOf
from exclave.api.routes import UserRoute, make_router
from exclave.control import accounts
from exclave.wire.identity import NewToken, TokenCreated, TokenInfo
from exclave.wire.model import Page

router = make_router("/v1/tokens", "tokens", UserRoute)


@router.get("")
async def list_tokens(page: PageOf, user: UserOf, deps: DepsOf) -> Page[TokenInfo]:
    """List the org's tokens, without their secrets."""
    return await accounts.list_tokens(deps, user, page.cursor, page.limit)


@router.post("", status_code=201)
async def create_token(wish: NewToken, user: UserOf, once: OnceOf) -> TokenCreated:
    """Create a token. The reply holds its secret, which is shown once."""
    return await once(
        TokenCreated, wish, lambda deps: accounts.create_token(deps, user, wish), secret=True
    )


@router.delete("/{token}", status_code=204)
async def revoke_token(token: TokenOf, user: UserOf, deps: DepsOf) -> None:
    """Revoke a token at once."""
    await accounts.revoke_token(deps, user, token)
