"""Calls about API tokens."""

from exclave.client.control_http import ControlHttp, part
from exclave.wire.identity import NewToken, TokenCreated, TokenInfo, TokenRevoked
from exclave.wire.model import Page


class Tokens:
    """API tokens of the org."""

    def __init__(self, http: ControlHttp) -> None:
        self._http = http

    async def list(self, cursor: str | None = None, limit: int = 100) -> Page[TokenInfo]:
        """Return a page of the org's tokens, without their secrets."""
        return await self._http.list_page(TokenInfo, "/v1/tokens", cursor, limit)

    async def create(self, body: NewToken) -> TokenCreated:
        """Create a token; the reply holds its secret."""
        return await self._http.post(TokenCreated, "/v1/tokens", body)

    async def confirm(self, token_id: str) -> None:
        """Confirm that a token belongs to a different person than the one who created it."""
        await self._http.put_without_reply(f"/v1/tokens/{part(token_id)}/confirmed")

    async def revoke(
        self, token_id: str, *, cascade: bool = False, runners: bool = False, dry_run: bool = False
    ) -> TokenRevoked:
        """Revoke a token at once; with `cascade` also the tokens created with it."""
        flags = {"cascade": cascade, "runners": runners, "dry_run": dry_run}
        return await self._http.delete_with_reply(
            TokenRevoked,
            f"/v1/tokens/{part(token_id)}",
            **{name: "true" for name, is_on in flags.items() if is_on},
        )
