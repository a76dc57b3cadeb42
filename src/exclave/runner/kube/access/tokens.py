"""Tokens of clusters: fixed, read from a file, or issued for a while and renewed in time."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from exclave.base.clock import Clock
from exclave.base.secrets import Secret
from exclave.runner.kube.api.errors import AccessRefused

NoteToken = Callable[[Secret], None]
"""Masks a token in every log from now on."""
_FILE_AGAIN_S: Final = 60.0
_LONGEST_TOKEN: Final = 64 << 10


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A token, and for how many seconds it may be used."""

    value: Secret
    usable_s: float | None


Issue = Callable[[], Awaitable[IssuedToken]]
"""Requests a new token from its issuer."""


class FixedToken:
    """A token that was given and never changes."""

    def __init__(self, token: Secret) -> None:
        self._token = token

    async def read_headers(self) -> Mapping[str, str]:
        """Return the header with the token."""
        return write_bearer(self._token)

    async def renew(self) -> bool:
        """Return False: there is no other token."""
        return False


class IssuedTokens:
    """Asks an issuer for a token when there is none, or the last one is too old."""

    def __init__(self, issue: Issue, clock: Clock, note: NoteToken) -> None:
        self._issue = issue
        self._clock = clock
        self._note = note
        self._token: IssuedToken | None = None
        self._until = 0.0
        self._issuing = asyncio.Lock()

    async def read_headers(self) -> Mapping[str, str]:
        """Return the header with a token that is valid now."""
        async with self._issuing:
            if self._token is None or self._clock.monotonic() >= self._until:
                self._token = await self._issue()
                self._note(self._token.value)
                usable_s = self._token.usable_s
                self._until = (
                    float("inf") if usable_s is None else self._clock.monotonic() + usable_s
                )
            return write_bearer(self._token.value)

    async def renew(self) -> bool:
        """Forget the token; the next request gets a new one."""
        self._token = None
        return True


def read_token_file(path: Path) -> Issue:
    """Return an issuer that reads a file which others keep fresh; it is read again each minute."""

    def read() -> IssuedToken:
        try:
            with path.open("rb") as opened:
                token = opened.read(_LONGEST_TOKEN).decode("ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            message = f"the token file `{path}` cannot be read: {error}"
            raise AccessRefused(message) from error
        if not token:
            raise AccessRefused(f"the token file `{path}` is empty")
        return IssuedToken(Secret(token), _FILE_AGAIN_S)

    async def issue() -> IssuedToken:
        return await asyncio.to_thread(read)

    return issue


def write_bearer(token: Secret) -> dict[str, str]:
    """Return the header of a token."""
    return {"Authorization": f"Bearer {token.reveal()}"}
