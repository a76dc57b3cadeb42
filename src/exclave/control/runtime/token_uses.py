"""Recently used API tokens, collected in memory so that reading requests need not write."""

from collections.abc import Sequence

from exclave.domain.identity import OrgId, TokenId

_MOST = 10_000


class TokenUses:
    """Uses that are not yet stored; when there are too many, further ones are dropped."""

    def __init__(self) -> None:
        self._used: dict[tuple[OrgId, TokenId], None] = {}

    def note(self, org: OrgId, token: TokenId) -> None:
        """Record that a token was used."""
        if len(self._used) < _MOST:
            self._used[org, token] = None

    def pop_all(self) -> Sequence[tuple[OrgId, TokenId]]:
        """Return all recorded uses and clear them."""
        used, self._used = self._used, {}
        return list(used)
