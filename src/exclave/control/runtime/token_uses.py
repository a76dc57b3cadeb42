"""Which API tokens were used lately: noted in memory, so that a request that reads only reads."""

from collections.abc import Sequence

from exclave.domain.identity import OrgId, TokenId

_MOST = 10_000


class TokenUses:
    """Uses that are not yet written; when there are too many, the newest are not noted."""

    def __init__(self) -> None:
        self._used: dict[tuple[OrgId, TokenId], None] = {}

    def note(self, org: OrgId, token: TokenId) -> None:
        """Note a use."""
        if len(self._used) < _MOST:
            self._used[org, token] = None

    def pop_all(self) -> Sequence[tuple[OrgId, TokenId]]:
        """Return all uses and begin anew."""
        used, self._used = self._used, {}
        return list(used)
