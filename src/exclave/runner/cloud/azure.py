"""The runner in a subscription of Azure: roles are managed identities, secrets are in a vault."""

import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

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
from exclave.runner.cloud.exchange import CloudRefused, ask_cloud, ask_cloud_json
from exclave.runner.cloud.imds import AzureMetadata

VAULT: Final = "https://vault.azure.net"
ARM: Final = "https://management.azure.com/"
AKS: Final = "6dae42f8-4368-4678-94ff-3960e28e3630"
_RESOURCES: Final = frozenset(
    {
        "https://management.azure.com",
        "https://management.core.windows.net",
        VAULT,
        "https://storage.azure.com",
        "https://containerregistry.azure.net",
        AKS,
    }
)
"""What a job may get tokens for. The directory is not among it: a role has no rights there."""
_VERSION: Final = "api-version=7.4"


@dataclass(slots=True)
class AzureAccount:
    """The subscription that the runner's machine is in.

    References of secrets are `https://VAULT.vault.azure.net/secrets/NAME`.
    """

    identity: str
    """The client id of the runner's own identity."""
    caller: Caller
    metadata: AzureMetadata
    url: str = ""
    """Where all vaults are in tests, each below its name; empty: where references say."""

    async def read_secret(self, reference: str) -> Secret | None:
        """Return the newest value of a secret; blank means that it was not given."""
        try:
            reply = await self._ask("GET", reference)
        except SecretDenied as denied:
            if denied.status == HTTPStatus.NOT_FOUND and "SecretNotFound" in denied.message:
                return None
            raise
        value = text_or_empty(reply.get("value"))
        return Secret(value) if value.strip() else None

    async def has_secret(self, reference: str) -> str:
        """Return the id of the newest enabled version; empty if there is none."""
        versions = await self._list_versions(reference)
        return versions[-1] if versions else ""

    async def write_secret(self, reference: str, value: Secret) -> None:
        """Store a new version."""
        await self._ask("PUT", reference, {"value": value.reveal()})

    async def read_oldest(self, reference: str) -> Secret | None:
        """Return the value of the first version that is enabled."""
        versions = await self._list_versions(reference)
        return await self.read_secret(f"{reference}/{versions[0]}") if versions else None

    async def assume_role(self, session: RoleSession, resource: str = "") -> Credential:
        """Return a token of the role's identity for a resource."""
        wanted = resource or ARM
        if not is_allowed_resource(wanted):
            raise CloudRefused(f"jobs get no tokens for `{wanted}`", status=HTTPStatus.FORBIDDEN)
        token = await self.metadata.read_token(wanted, session.role)
        return Credential(token.expires_at, token=token.value)

    async def post(self, url: str, resource: str, body: bytes, *, what: str) -> str:
        """Return the answer of an API that is asked in JSON as the runner's own identity."""

        async def ask() -> str:
            token = await self.metadata.read_token(resource, self.identity)
            headers = {
                "Authorization": f"Bearer {token.value.reveal()}",
                "Content-Type": "application/json",
            }
            return await ask_cloud(
                "POST",
                self._locate(url),
                what=what,
                headers=headers,
                body=body,
                limits=API_LIMITS,
                route=self.caller.route,
            )

        return await self.caller.retry(ask)

    async def _list_versions(self, reference: str) -> list[str]:
        """Return the enabled versions, the oldest first."""
        try:
            reply = await self._ask("GET", f"{reference}/versions")
        except SecretDenied as denied:
            if denied.status == HTTPStatus.NOT_FOUND:
                return []
            raise
        dated: list[tuple[float, str]] = []
        for entry in map(object_or_empty, list_or_empty(reply.get("value"))):
            facts = object_or_empty(entry.get("attributes"))
            created = facts.get("created")
            if facts.get("enabled") is True and isinstance(created, int | float):
                dated.append((float(created), text_or_empty(entry.get("id")).rpartition("/")[2]))
        return [version for _, version in sorted(dated)]

    async def _ask(
        self, method: str, reference: str, request: JsonObject | None = None
    ) -> JsonObject:
        async def ask() -> JsonObject:
            token = await self.metadata.read_token(VAULT, self.identity)
            headers = {"Authorization": f"Bearer {token.value.reveal()}"}
            body = None if request is None else json.dumps(request).encode()
            if body is not None:
                headers["Content-Type"] = "application/json"
            return await ask_cloud_json(
                method,
                f"{self._locate(reference)}?{_VERSION}",
                what="Key Vault",
                headers=headers,
                body=body,
                limits=API_LIMITS,
                route=self.caller.route,
            )

        try:
            return await self.caller.retry(ask)
        except CloudRefused as refused:
            raise explain_secret(refused) from refused

    def _locate(self, reference: str) -> str:
        """Return the address of a secret, or of another API."""
        return f"{self.url}/{reference.removeprefix('https://')}" if self.url else reference


def is_allowed_resource(resource: str) -> bool:
    """Return whether a job may get a token for a resource."""
    return resource.removesuffix("/") in _RESOURCES
