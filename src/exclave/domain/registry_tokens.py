"""Registry tokens: short-lived credentials of registry clients."""

from dataclasses import dataclass
from datetime import datetime

from exclave.domain.identity import OrgId, TokenId

ID_PREFIX = "rgt_"
ID_CHARS = 26
"""A token is named by this much of its hash: enough to be unique, useless to log in with."""


@dataclass(frozen=True, slots=True)
class RegistryToken:
    """A token for a repository, known by its hash."""

    org_id: OrgId
    hash: str
    repository: str
    push: bool
    created_by: str
    created_at: datetime
    expires_at: datetime
    parent_id: TokenId | None
    """The API token that it was made with."""

    @property
    def id(self) -> str:
        """Its public id."""
        return name_registry_token(self.hash)


def name_registry_token(hashed: str) -> str:
    """Return the public id of a registry token: 104 bits of its hash, which open nothing."""
    return f"{ID_PREFIX}{hashed[:ID_CHARS]}"
