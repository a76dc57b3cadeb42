"""What the runner does in a customer's account: take on roles, read secrets. One per cloud."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import Final, Protocol, TypeVar

from exclave.base.clock import Clock
from exclave.base.ids import Randomness
from exclave.base.secrets import Secret
from exclave.runner.cloud.exchange import CloudRefused, Limits, Route
from exclave.runner.cloud.sigv4 import AwsKeys

T = TypeVar("T")

API_LIMITS: Final = Limits(whole_s=10.0, connect_s=5.0)
_TRIES: Final = 3
_PAUSE_S: Final = 0.4
_PASSING: Final = frozenset({0, 429, 500, 502, 503, 504})
_TAKEN_AWAY: Final = frozenset(
    {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND}
)
"""Without a right, without the secret, or without the identity: Google disables accounts."""
_DENIALS: Final = ("AccessDenied", "PERMISSION_DENIED", "Forbidden", "ForbiddenByRbac")
_ABSENT: Final = ("ResourceNotFound", "NOT_FOUND", "SecretNotFound", "marked for deletion")


class SecretDenied(CloudRefused):
    """The runner may not read a secret, or there is none: the customer took it away."""

    code = "secret_denied"


@dataclass(frozen=True, slots=True)
class Credential:
    """What lets a job act as its role, until it expires: keys in AWS, a token elsewhere."""

    expires_at: datetime
    keys: AwsKeys | None = None
    token: Secret | None = None

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """What has to be masked."""
        keys = self.keys
        mine = () if keys is None else (keys.secret_key, keys.session_token)
        return tuple(secret for secret in (*mine, self.token) if secret is not None)


@dataclass(frozen=True, slots=True)
class RoleSession:
    """A job that takes on a role; the cloud's own audit log shows this with every call."""

    role: str
    """What the role is in the cloud."""
    execution: str
    job: str
    tags: Mapping[str, str] = field(default_factory=dict)


class CloudAccount(Protocol):
    """The account of one cloud, as the runner's machine sees it."""

    async def read_secret(self, reference: str) -> Secret | None:
        """Return the newest value of a secret; None if it has none. `SecretDenied` if refused."""
        ...

    async def has_secret(self, reference: str) -> str:
        """Return the id of the newest version; empty if the secret has no value."""
        ...

    async def write_secret(self, reference: str, value: Secret) -> None:
        """Store a new version of a secret."""
        ...

    async def read_oldest(self, reference: str) -> Secret | None:
        """Return the first value that a secret ever had; None if it has none."""
        ...

    async def assume_role(self, session: RoleSession, resource: str = "") -> Credential:
        """Return what lets a job act as a role; `resource` is what a token of Azure is for."""
        ...


@dataclass(frozen=True, slots=True)
class Caller:
    """How requests to the APIs of a cloud are made: by which way, and how often."""

    clock: Clock
    randomness: Randomness
    route: Route = field(default_factory=Route)

    async def retry(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Return an answer; ask again where the cloud is overloaded or does not answer."""
        for attempt in range(_TRIES - 1):
            try:
                return await ask()
            except CloudRefused as refused:
                if refused.status not in _PASSING and "Throttl" not in refused.message:
                    raise
            share = self.randomness.bits(16) / (1 << 16)
            await self.clock.sleep(_PAUSE_S * 2**attempt * (0.5 + share))
        return await ask()


def explain_secret(refused: CloudRefused) -> CloudRefused:
    """Return a refusal as one that means `stop` if the customer has taken the secret away."""
    by_text = any(word in refused.message for word in (*_DENIALS, *_ABSENT))
    by_status = refused.status in _TAKEN_AWAY
    if refused.status and (by_text or by_status):
        return SecretDenied(refused.message, hint=refused.advice or None, status=refused.status)
    return refused
