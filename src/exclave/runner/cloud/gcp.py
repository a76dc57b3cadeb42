"""The runner in a project of Google Cloud: roles are service accounts, secrets have versions."""

import base64
import binascii
import json
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

from exclave.base.json_values import JsonObject, list_or_empty, object_or_empty, text_or_empty
from exclave.base.secrets import Secret
from exclave.runner.cloud.accounts import (
    API_LIMITS,
    Caller,
    Credential,
    RoleSession,
    SecretDenied,
    explain_secret,
)
from exclave.runner.cloud.exchange import CloudRefused, ask_cloud_json
from exclave.runner.cloud.imds import GcpMetadata, MachineToken, read_time

_LIFETIME_S: Final = 900
_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
_EARLY: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class GcpAddresses:
    """Where the APIs are; tests have their own."""

    credentials: str = "https://iamcredentials.googleapis.com"
    secrets: str = "https://secretmanager.googleapis.com"
    logging: str = "https://logging.googleapis.com"


@dataclass(slots=True)
class GcpAccount:
    """The project of Google Cloud that the runner's machine is in.

    References of secrets are `projects/P/secrets/NAME`.
    """

    caller: Caller
    metadata: GcpMetadata
    addresses: GcpAddresses = GcpAddresses()
    _machine: MachineToken | None = None

    async def read_secret(self, reference: str) -> Secret | None:
        """Return the newest value of a secret; blank means that it was not given."""
        return await self._access(reference, "latest")

    async def has_secret(self, reference: str) -> str:
        """Return the name of the newest enabled version; empty if there is none."""
        versions = await self._list_versions(reference)
        return versions[0] if versions else ""

    async def write_secret(self, reference: str, value: Secret) -> None:
        """Add a version; the Stack allows it for secrets that the runner generates."""
        payload = base64.b64encode(value.reveal().encode()).decode()
        await self._ask("POST", f"{reference}:addVersion", {"payload": {"data": payload}})

    async def read_oldest(self, reference: str) -> Secret | None:
        """Return the value of the first version that is enabled."""
        versions = await self._list_versions(reference)
        return await self._access(reference, versions[-1]) if versions else None

    async def assume_role(self, session: RoleSession, resource: str = "") -> Credential:
        """Return a token of the role's service account for a quarter of an hour."""
        del resource
        account = quote(session.role, safe="@")
        url = (
            f"{self.addresses.credentials}/v1/projects/-/serviceAccounts/{account}"
            ":generateAccessToken"
        )
        request: JsonObject = {"scope": [_SCOPE], "lifetime": f"{_LIFETIME_S}s"}
        reply = await self.send("POST", url, f"Google, asked for `{session.role}`,", request)
        token, ends = text_or_empty(reply.get("accessToken")), read_time(reply.get("expireTime"))
        if not token or ends is None:
            raise CloudRefused("Google answered without a token")
        return Credential(ends, token=Secret(token))

    async def _access(self, reference: str, version: str) -> Secret | None:
        try:
            reply = await self._ask("GET", f"{reference}/versions/{version}:access")
        except SecretDenied as denied:
            if version == "latest" and "versions/latest" in denied.message:
                return None
            raise
        data = text_or_empty(object_or_empty(reply.get("payload")).get("data"))
        try:
            value = base64.b64decode(data, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError) as error:
            raise CloudRefused("a secret in Secret Manager is not text") from error
        return Secret(value) if value.strip() else None

    async def _list_versions(self, reference: str) -> list[str]:
        """Return the numbers of the enabled versions, the newest first."""
        reply = await self._ask("GET", f"{reference}/versions?filter=state:ENABLED&pageSize=1000")
        listed = (object_or_empty(entry) for entry in list_or_empty(reply.get("versions")))
        numbers = [text_or_empty(entry.get("name")).rpartition("/")[2] for entry in listed]
        return sorted((number for number in numbers if number.isdecimal()), key=int, reverse=True)

    async def _ask(self, method: str, path: str, request: JsonObject | None = None) -> JsonObject:
        try:
            url = f"{self.addresses.secrets}/v1/{path}"
            return await self.send(method, url, "Secret Manager", request)
        except CloudRefused as refused:
            raise explain_secret(refused) from refused

    async def send(
        self, method: str, url: str, what: str, request: JsonObject | None
    ) -> JsonObject:
        """Return the answer of an API that is asked as the machine."""

        async def ask() -> JsonObject:
            headers = {"Authorization": f"Bearer {await self._read_token()}"}
            body = None if request is None else json.dumps(request).encode()
            if body is not None:
                headers["Content-Type"] = "application/json"
            try:
                return await ask_cloud_json(
                    method,
                    url,
                    what=what,
                    headers=headers,
                    body=body,
                    limits=API_LIMITS,
                    route=self.caller.route,
                )
            except CloudRefused as refused:
                if refused.status == HTTPStatus.UNAUTHORIZED:
                    self._machine = None  # the next try has a token that is not from before
                raise

        return await self.caller.retry(ask)

    async def _read_token(self) -> str:
        now = self.caller.clock.now()
        if self._machine is None or self._machine.expires_at - now < _EARLY:
            self._machine = await self.metadata.read_token()
        return self._machine.value.reveal()
