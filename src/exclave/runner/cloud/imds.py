"""The metadata servers of machines in AWS, Google Cloud and Azure.

They are on the machine's own link: they are never reached through a proxy, never followed to
another address, and have five seconds to answer. Whoever can ask them can act as the machine, so
jobs cannot.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Final
from urllib.parse import quote, urlencode

from exclave.base.clock import Clock
from exclave.base.json_values import Json, object_or_empty, text_or_empty
from exclave.base.secrets import Secret
from exclave.runner.cloud.exchange import (
    CloudRefused,
    Limits,
    ask_cloud,
    ask_cloud_json,
    read_object,
)
from exclave.runner.cloud.sigv4 import AwsKeys

METADATA: Final = "http://169.254.169.254"
"""The same address in all three clouds. No name, so no resolver can point elsewhere."""
_LIMITS: Final = Limits(whole_s=5.0, connect_s=2.0)
_SERVER: Final = "the metadata server of the machine"
_SESSION_S: Final = 300
_AZURE_VERSION: Final = "2018-02-01"
_AZURE_INSTANCE: Final = "2021-02-01"
_AZURE_EVENTS: Final = "2020-07-01"
_NONCE: Final = re.compile(r"[A-Za-z0-9_-]{1,32}")


@dataclass(frozen=True, slots=True)
class Machine:
    """What a machine knows about itself; a fact that it does not know is empty."""

    id: str
    zone: str = ""
    image: str = ""
    type: str = ""


@dataclass(frozen=True, slots=True)
class MachineKeys:
    """The keys of a machine's role, and when they end."""

    keys: AwsKeys
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class MachineToken:
    """A token of a machine's identity, and when it ends."""

    value: Secret
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class AwsMetadata:
    """The instance metadata service of AWS, version 2: each question needs a session."""

    url: str = METADATA

    async def read_keys(self) -> MachineKeys:
        """Return the keys of the machine's role."""
        session = await self._open_session()
        roles = "meta-data/iam/security-credentials"
        name = (await self._read(f"{roles}/", session)).split("\n")[0]
        if not re.fullmatch(r"[\w+=,.@-]{1,64}", name):
            raise CloudRefused("the machine has no role: attach an instance profile")
        facts = read_object(await self._read(f"{roles}/{name}", session), "the role of the machine")
        keys = AwsKeys(
            text_or_empty(facts.get("AccessKeyId")),
            Secret(text_or_empty(facts.get("SecretAccessKey"))),
            Secret(text_or_empty(facts.get("Token"))),
        )
        if not keys.access_key or not keys.secret_key.reveal():
            raise CloudRefused("the metadata server has no keys for the role of the machine")
        return MachineKeys(keys, read_time(facts.get("Expiration")))

    async def read_text(self, path: str) -> str:
        """Return a text below `/latest`, or nothing if there is none."""
        return await self._read(path, await self._open_session())

    async def read_machine(self) -> Machine:
        """Return the machine."""
        text = await self.read_text("dynamic/instance-identity/document")
        facts = read_object(text, "the identity document of the machine")
        return Machine(
            text_or_empty(facts.get("instanceId")),
            text_or_empty(facts.get("availabilityZone")),
            text_or_empty(facts.get("imageId")),
            text_or_empty(facts.get("instanceType")),
        )

    async def _open_session(self) -> Secret:
        ttl = {"X-aws-ec2-metadata-token-ttl-seconds": str(_SESSION_S)}
        url = f"{self.url}/latest/api/token"
        text = await ask_cloud("PUT", url, what=_SERVER, headers=ttl, limits=_LIMITS)
        return Secret(text.strip())

    async def _read(self, path: str, session: Secret) -> str:
        headers = {"X-aws-ec2-metadata-token": session.reveal()}
        return await _read_text(f"{self.url}/latest/{path}", headers)


@dataclass(frozen=True, slots=True)
class GcpMetadata:
    """The metadata server of Google Cloud."""

    clock: Clock
    url: str = METADATA

    async def read_token(self, account: str = "default") -> MachineToken:
        """Return an access token of a service account of the machine."""
        asked_at = self.clock.now()
        url = f"{self._root}/instance/service-accounts/{quote(account, safe='@')}/token"
        reply = await ask_cloud_json(
            "GET", url, what=_SERVER, headers=_GOOGLE_HEADERS, limits=_LIMITS
        )
        left_s = reply.get("expires_in")
        seconds = float(left_s) if isinstance(left_s, int | float) else 0.0
        return _require_token(reply.get("access_token"), asked_at + timedelta(seconds=seconds))

    async def read_identity(self, audience: str, account: str = "default") -> Secret:
        """Return the signed statement of who the machine is, for one audience."""
        query = urlencode({"audience": audience, "format": "full"})
        path = f"instance/service-accounts/{quote(account, safe='@')}/identity"
        text = (await self.read_text(f"{path}?{query}")).strip()
        if not text:
            raise CloudRefused("the machine has no service account")
        return Secret(text)

    async def read_text(self, path: str) -> str:
        """Return a text below `/computeMetadata/v1`, or nothing if there is none."""
        return await _read_text(f"{self._root}/{path}", _GOOGLE_HEADERS)

    async def read_machine(self) -> Machine:
        """Return the machine."""
        text = await self.read_text("instance/?recursive=true")
        facts = read_object(text, "what the metadata server knows about the machine")
        number = facts.get("id")
        return Machine(
            str(number) if isinstance(number, int | str) else "",
            _last(facts.get("zone")),
            text_or_empty(facts.get("image")),
            _last(facts.get("machineType")),
        )

    @property
    def _root(self) -> str:
        return f"{self.url}/computeMetadata/v1"


@dataclass(frozen=True, slots=True)
class AzureMetadata:
    """The instance metadata service of Azure."""

    clock: Clock
    url: str = METADATA

    async def read_token(self, resource: str, client_id: str = "") -> MachineToken:
        """Return a token of an identity for a resource; without an id, of the only identity."""
        query = {"api-version": _AZURE_VERSION, "resource": resource}
        if client_id:
            query["client_id"] = client_id
        reply = await ask_cloud_json(
            "GET",
            f"{self.url}/metadata/identity/oauth2/token?{urlencode(query)}",
            what=_SERVER,
            headers=_AZURE_HEADERS,
            limits=_LIMITS,
        )
        ends = str(reply.get("expires_on"))
        at = datetime.fromtimestamp(int(ends), UTC) if re.fullmatch(r"\d{1,11}", ends) else None
        return _require_token(reply.get("access_token"), at)

    async def read_document(self, nonce: str) -> str:
        """Return the attested document with a nonce: PKCS#7 in Base64."""
        if not _NONCE.fullmatch(nonce):
            raise CloudRefused("Azure takes nonces of at most 32 letters and digits")
        query = urlencode({"api-version": _AZURE_INSTANCE, "nonce": nonce})
        text = await _read_text(f"{self.url}/metadata/attested/document?{query}", _AZURE_HEADERS)
        facts = read_object(text, "the attested document of the machine")
        return text_or_empty(facts.get("signature"))

    async def read_machine(self) -> Machine:
        """Return the machine."""
        url = f"{self.url}/metadata/instance/compute?api-version={_AZURE_INSTANCE}"
        text = await _read_text(url, _AZURE_HEADERS)
        facts = read_object(text, "what the metadata server knows about the machine")
        image = object_or_empty(object_or_empty(facts.get("storageProfile")).get("imageReference"))
        return Machine(
            text_or_empty(facts.get("vmId")),
            text_or_empty(facts.get("zone")),
            text_or_empty(image.get("sku")) or text_or_empty(image.get("id")),
            text_or_empty(facts.get("vmSize")),
        )

    async def read_events(self) -> str:
        """Return what Azure announces for the machine, as JSON."""
        url = f"{self.url}/metadata/scheduledevents?api-version={_AZURE_EVENTS}"
        return await _read_text(url, _AZURE_HEADERS) or "{}"


_GOOGLE_HEADERS: Final = {"Metadata-Flavor": "Google"}
_AZURE_HEADERS: Final = {"Metadata": "true"}


def read_time(value: Json) -> datetime | None:
    """Return a time that has a zone; nothing if it is none."""
    try:
        at = datetime.fromisoformat(text_or_empty(value))
    except ValueError:
        return None
    return None if at.tzinfo is None else at


async def _read_text(url: str, headers: Mapping[str, str]) -> str:
    try:
        return await ask_cloud("GET", url, what=_SERVER, headers=headers, limits=_LIMITS)
    except CloudRefused as refused:
        if refused.status == HTTPStatus.NOT_FOUND:
            return ""
        raise


def _require_token(value: Json, ends: datetime | None) -> MachineToken:
    token = text_or_empty(value)
    if not token or ends is None:
        raise CloudRefused("the metadata server of the machine answered without a token")
    return MachineToken(Secret(token), ends)


def _last(value: Json) -> str:
    """Return the name at the end of a path like `projects/1/zones/europe-west1-b`."""
    return text_or_empty(value).rpartition("/")[2]
