"""What commands ask for credentials, as the SDKs of each cloud do: three protocols."""

import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from http import HTTPStatus
from typing import Final, Protocol
from urllib.parse import parse_qs, urlsplit

from exclave.base.clock import Clock
from exclave.base.json_values import JsonObject
from exclave.runner.cloud.azure import ARM, is_allowed_resource
from exclave.runner.cloud.credentials import JobCredentials, require_keys, require_token
from exclave.runner.jobs.workspace import Workspace

Headers = Mapping[str, str]
"""Names are in lower case."""
_REFUSED: Final = b'{"code":"Forbidden","message":"this endpoint belongs to a job"}'
_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
_TOKEN_FILE: Final = "cloud-token"  # noqa: S105 - the name of a file
_PROJECT: Final = "computeMetadata/v1/project/"
_ACCOUNTS: Final = "computeMetadata/v1/instance/service-accounts/"


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to a command."""

    status: HTTPStatus
    body: bytes
    kind: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()


REFUSED: Final = Answer(HTTPStatus.FORBIDDEN, _REFUSED)
ABSENT: Final = Answer(HTTPStatus.NOT_FOUND, b"not found", "text/plain")


@dataclass(frozen=True, slots=True)
class Keys:
    """What opens the endpoint of one job."""

    path: str
    token: str


class Endpoint(Protocol):
    """The protocol of one cloud."""

    def describe(self, address: str, workspace: Workspace) -> dict[str, str]:
        """Return the variables of commands; `address` is the URL of the endpoint."""
        ...

    async def answer(self, target: str, headers: Headers) -> Answer:
        """Return the answer to a request for a path with a query."""
        ...


@dataclass(frozen=True, slots=True)
class AwsEndpoint:
    """Container credentials, as all SDKs of AWS ask for them."""

    credentials: JobCredentials
    keys: Keys
    region: str

    def describe(self, address: str, workspace: Workspace) -> dict[str, str]:
        """Return the variables, and write the token where only the job's user can read it."""
        token, empty = workspace.folder / _TOKEN_FILE, workspace.folder / "no-aws-config"
        workspace.write(token, self.keys.token.encode(), mode=0o400)
        workspace.write(empty, b"", mode=0o400)
        return {
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{address}/{self.keys.path}",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(token),
            "AWS_REGION": self.region,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": str(empty),
            "AWS_SHARED_CREDENTIALS_FILE": str(empty),
        }

    async def answer(self, target: str, headers: Headers) -> Answer:
        """Return keys of the job's role."""
        path_fits = is_same(target, f"/{self.keys.path}")
        if not (is_same(headers.get("authorization", ""), self.keys.token) and path_fits):
            return REFUSED
        held = await self.credentials.get()
        access, secret, session = require_keys(held)
        ends = held.expires_at.astimezone(UTC)
        return _say(
            {
                "AccessKeyId": access,
                "SecretAccessKey": secret.reveal(),
                "Token": "" if session is None else session.reveal(),
                "Expiration": ends.strftime("%Y-%m-%dT%H:%M:%SZ"),
            }
        )


@dataclass(frozen=True, slots=True)
class GcpEndpoint:
    """The part of the metadata server of Google Cloud that clients need for tokens.

    Its protocol has no secret: whether the job asks is decided by the uid alone.
    """

    credentials: JobCredentials
    clock: Clock
    project: str
    region: str

    def describe(self, address: str, workspace: Workspace) -> dict[str, str]:
        """Return the variables."""
        del workspace
        host = address.removeprefix("http://")
        names = ("GCE_METADATA_HOST", "GCE_METADATA_IP", "GCE_METADATA_ROOT")
        return {
            **dict.fromkeys(names, host),
            "CLOUDSDK_CORE_PROJECT": self.project,
            "GOOGLE_PROJECT": self.project,
            "GOOGLE_CLOUD_PROJECT": self.project,
            "GOOGLE_REGION": self.region,
        }

    async def answer(self, target: str, headers: Headers) -> Answer:
        """Return a token of the job's account, or what clients ask before that."""
        parts = urlsplit(target)
        path = parts.path.strip("/")
        if not path:
            return _write_google("computeMetadata/\n")
        if headers.get("metadata-flavor") != "Google" or "x-forwarded-for" in headers:
            return REFUSED
        match path:
            case "computeMetadata/v1/project/project-id":
                return _write_google(self.project)
            case "computeMetadata/v1/universe/universe-domain":
                return _write_google("googleapis.com")
            case _ if path.startswith(_ACCOUNTS):
                return await self._answer_account(path.removeprefix(_ACCOUNTS), parts.query)
            case _:
                return ABSENT

    async def _answer_account(self, path: str, query: str) -> Answer:
        account, _, what = path.partition("/")
        role = self.credentials.role
        if account not in {"default", role}:
            return ABSENT
        match what:
            case "token":
                return await self._answer_token()
            case "email":
                return _write_google(role)
            case "scopes":
                return _write_google(f"{_SCOPE}\n")
            case "" if "recursive" in parse_qs(query):
                facts: JsonObject = {"aliases": ["default"], "email": role, "scopes": [_SCOPE]}
                return _write_google(json.dumps(facts), "application/json")
            case _:
                return ABSENT  # also `identity`: a job must not prove that it is the machine

    async def _answer_token(self) -> Answer:
        held = await self.credentials.get()
        left = int((held.expires_at - self.clock.now()).total_seconds())
        token = require_token(held).reveal()
        facts: JsonObject = {"access_token": token, "expires_in": left, "token_type": "Bearer"}
        return _write_google(json.dumps(facts), "application/json")


@dataclass(frozen=True, slots=True)
class AzureEndpoint:
    """Managed identities in two forms: of virtual machines, and of App Service."""

    credentials: JobCredentials
    clock: Clock
    keys: Keys
    tenant: str
    subscription: str

    def describe(self, address: str, workspace: Workspace) -> dict[str, str]:
        """Return the variables: those of Terraform's provider, and those of all other SDKs."""
        del workspace
        root = f"{address}/{self.keys.path}"
        client = self.credentials.role
        return {
            "ARM_USE_MSI": "true",
            "ARM_MSI_ENDPOINT": f"{root}/metadata/identity/oauth2/token",
            "ARM_CLIENT_ID": client,
            "ARM_TENANT_ID": self.tenant,
            "ARM_SUBSCRIPTION_ID": self.subscription,
            "AZURE_CLIENT_ID": client,
            "AZURE_TENANT_ID": self.tenant,
            "IDENTITY_ENDPOINT": f"{root}/token",
            "IDENTITY_HEADER": self.keys.token,
        }

    async def answer(self, target: str, headers: Headers) -> Answer:
        """Return a token of the job's identity, for what jobs may use."""
        parts = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if not self._is_allowed(parts.path, headers):
            return REFUSED
        resource = query.get("resource") or query.get("scope", "").removesuffix("/.default") or ARM
        if query.get("client_id", self.credentials.role) != self.credentials.role:
            return REFUSED
        if not is_allowed_resource(resource):
            return REFUSED
        held = await self.credentials.get(resource)
        ends = int(held.expires_at.timestamp())
        now = int(self.clock.now().timestamp())
        return _say(
            {
                "access_token": require_token(held).reveal(),
                "expires_on": str(ends),
                "expires_in": str(ends - now),
                "not_before": str(now),
                "resource": resource,
                "token_type": "Bearer",
                "client_id": self.credentials.role,
            }
        )

    def _is_allowed(self, path: str, headers: Headers) -> bool:
        root = f"/{self.keys.path}"
        if is_same(path, f"{root}/token"):
            return is_same(headers.get("x-identity-header", ""), self.keys.token)
        by_machine = is_same(path, f"{root}/metadata/identity/oauth2/token")
        return by_machine and headers.get("metadata", "").lower() == "true"


def is_same(given: str, wanted: str) -> bool:
    """Return whether two texts are the same, in a time that does not say where they differ."""
    return hmac.compare_digest(given.encode(), wanted.encode())


def _say(document: JsonObject) -> Answer:
    return Answer(HTTPStatus.OK, json.dumps(document).encode())


def _write_google(text: str, kind: str = "application/text") -> Answer:
    headers = (("Metadata-Flavor", "Google"), ("Server", "Metadata Server for VM"))
    return Answer(HTTPStatus.OK, text.encode(), kind, headers)
