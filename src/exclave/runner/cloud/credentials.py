"""The credentials of one job: cached as long as they are fresh enough for every client."""

import asyncio
from collections.abc import Callable
from typing import Final

from exclave.base.clock import Clock
from exclave.base.secrets import Secret
from exclave.runner.cloud.accounts import CloudAccount, Credential, RoleSession

FRESH_S: Final = 420.0
"""Nothing is handed out that ends sooner.

Terraform's provider for AWS asks again 300 seconds before the end of what it has, and for each of
its requests if it gets nothing that lasts longer.
"""


class JobCredentials:
    """Takes on the role of a job when it is needed, and again before its credential is too old."""

    def __init__(
        self,
        account: CloudAccount,
        session: RoleSession,
        clock: Clock,
        note: Callable[[Credential, str], None],
    ) -> None:
        self._account = account
        self._session = session
        self._clock = clock
        self._note = note
        self._held: dict[str, Credential] = {}
        self._asking = asyncio.Lock()

    @property
    def role(self) -> str:
        """What the role is in the cloud."""
        return self._session.role

    async def get(self, resource: str = "") -> Credential:
        """Return a credential that lasts long enough; `resource` is what a token is for."""
        async with self._asking:
            held = self._held.get(resource)
            if held is None or self._count_left(held) < FRESH_S:
                held = await self._account.assume_role(self._session, resource)
                self._note(held, resource)
                self._held[resource] = held
            return held

    def _count_left(self, credential: Credential) -> float:
        return (credential.expires_at - self._clock.now()).total_seconds()


def require_keys(credential: Credential) -> tuple[str, Secret, Secret | None]:
    """Return the keys of a credential of AWS."""
    keys = credential.keys
    if keys is None:
        raise TypeError("the credential has no keys")
    return keys.access_key, keys.secret_key, keys.session_token


def require_token(credential: Credential) -> Secret:
    """Return the token of a credential of Google Cloud or Azure."""
    if credential.token is None:
        raise TypeError("the credential has no token")
    return credential.token
