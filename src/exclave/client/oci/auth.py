"""Authentication at a registry: a bearer token, a password, or a token for a password."""

import base64
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import httpx
from pydantic import BaseModel, ConfigDict, ValidationError

from exclave.base.errors import InvalidInput
from exclave.base.secrets import Secret
from exclave.client.oci.documents import read_refusal
from exclave.client.problems import UnexpectedReply

GetToken = Callable[[], Awaitable[str]]
NoteToken = Callable[[Secret], None]

_PARAMETER = re.compile(r'([a-z_]+)="([^"]*)"')


@dataclass(frozen=True, slots=True)
class Login:
    """A name and a password for a registry that is not ours."""

    username: str
    password: Secret

    def write_basic(self) -> str:
        """Return the value of a basic Authorization header."""
        both = f"{self.username}:{self.password.reveal()}".encode()
        return f"Basic {base64.b64encode(both).decode()}"


class _TokenReply(BaseModel):
    model_config = ConfigDict(extra="ignore")

    token: str = ""
    access_token: str = ""


@dataclass(slots=True)
class Authorization:
    """Builds the Authorization header of each request from the registry's challenges.

    `token` is sent as it is: the embedded registry accepts a runner's access token. With a `login`
    the registry decides by its challenge whether it wants the password or a token for it.
    """

    token: GetToken | None = None
    login: Login | None = None
    note_token: NoteToken | None = None
    """Called with each token that the registry issues, so that it can be masked."""
    _known: dict[str, str] = field(default_factory=dict)

    async def write(self, scope: str) -> dict[str, str]:
        """Return the header for a scope; empty before the first challenge."""
        if self.token is not None:
            return {"Authorization": f"Bearer {await self.token()}"}
        known = self._known.get(scope) or self._known.get("")
        return {"Authorization": known} if known else {}

    async def learn(self, client: httpx.AsyncClient, refused: httpx.Response, scope: str) -> bool:
        """Process a challenge; return whether the request should be retried."""
        if self.token is not None:
            return False
        challenge = refused.headers.get("WWW-Authenticate", "")
        kind, _, rest = challenge.partition(" ")
        if kind.lower() == "basic" and self.login is not None:
            self._known[""] = self.login.write_basic()
            return True
        if kind.lower() != "bearer":
            return False
        asked = dict(_PARAMETER.findall(rest))
        self._known[scope] = f"Bearer {await self._fetch(client, refused.url, asked, scope)}"
        return True

    async def _fetch(
        self, client: httpx.AsyncClient, registry: httpx.URL, asked: dict[str, str], scope: str
    ) -> str:
        realm = httpx.URL(asked.get("realm", ""))
        if realm.scheme != "https" and (realm.scheme != "http" or registry.scheme == "https"):
            raise InvalidInput(
                f"the registry asks for credentials at `{realm}`, which is not safe",
                hint="The token server of a registry behind https must be behind https too.",
            )
        params = {"service": asked.get("service", ""), "scope": asked.get("scope") or scope}
        headers = {} if self.login is None else {"Authorization": self.login.write_basic()}
        reply = await client.get(realm, params=params, headers=headers)
        if not reply.is_success:
            raise read_refusal(reply)
        try:
            made = _TokenReply.model_validate_json(reply.content)
        except ValidationError as error:
            raise UnexpectedReply("the registry's token server sent no token") from error
        token = made.token or made.access_token
        if self.note_token is not None:
            self.note_token(Secret(token))
        return token
