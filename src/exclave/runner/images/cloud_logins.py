"""Logins at the registries of clouds, made of the identity of the machine that the runner is on."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal
from urllib.parse import urlencode, urlsplit

from exclave.base.clock import Clock
from exclave.base.json_values import list_or_empty, object_or_empty, text_or_empty
from exclave.base.secrets import Secret
from exclave.client.oci.auth import Login, NoteToken
from exclave.runner.cloud.exchange import CloudRefused, ask_cloud_json
from exclave.runner.cloud.sigv4 import AwsKeys, SignedFor, sign_post
from exclave.runner.images.references import ImageName
from exclave.runner.jobs.identity import JobIdentity
from exclave.runner.kube.access.aks import issue_aks_token
from exclave.runner.kube.access.clusters import Clouds
from exclave.runner.kube.access.eks import assume_role, read_machine_keys
from exclave.runner.kube.access.gke import issue_gke_token
from exclave.runner.kube.api.errors import AccessRefused
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason

CloudRegistry = Literal["ecr", "gar", "acr"]

_ECR_TARGET: Final = "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken"
_ECR_TYPE: Final = "application/x-amz-json-1.1"
_FORM: Final = "application/x-www-form-urlencoded"
_AZURE_RESOURCE: Final = "https://management.azure.com/"
_AZURE_USER: Final = "00000000-0000-0000-0000-000000000000"
_GOOGLE_USER: Final = "oauth2accesstoken"


@dataclass(frozen=True, slots=True)
class CloudLogins:
    """Exchanges the identity of a machine for logins at registries."""

    clouds: Clouds = field(default_factory=Clouds)
    ecr: str = ""
    """The address of the API of ECR; that of the region if it is empty."""

    async def log_in(
        self,
        registry: CloudRegistry,
        name: ImageName,
        clock: Clock,
        note: NoteToken,
        *,
        region: str = "",
        role: str = "",
        identity: JobIdentity | None = None,
    ) -> Login:
        """Return a login at the registry of an image, as a role if one is named; mask it.

        The role of a job wins over a named one.
        """
        try:
            match registry:
                case "ecr":
                    login = await self._log_in_ecr(region, role, clock, identity)
                case "gar":
                    login = Login(_GOOGLE_USER, await self._read_google(role, clock, identity))
                case "acr":
                    login = await self._log_in_acr(name, role, clock, identity)
        except (AccessRefused, CloudRefused) as refused:
            message = f"no login at {name.host}: {refused.message}. {refused.advice}".strip()
            raise WorkFailed(Reason.ACCESS_DENIED, message) from refused
        note(login.password)
        return login

    async def _log_in_ecr(
        self, region: str, role: str, clock: Clock, identity: JobIdentity | None
    ) -> Login:
        if not region:
            raise AccessRefused("the region of the registry is not known")
        if identity is not None:
            keys = AwsKeys(*await identity.read_keys())
        else:
            keys = await read_machine_keys(self.clouds.aws)
            if role:
                keys = await assume_role(keys, role, region, clock, self.clouds.aws)
        url = self.ecr or f"https://{name_ecr_api(region)}"
        headers = sign_post(
            keys,
            SignedFor("ecr", region, clock.now()),
            urlsplit(url).netloc,
            b"{}",
            _ECR_TYPE,
            {"x-amz-target": _ECR_TARGET},
        )
        reply = await ask_cloud_json("POST", f"{url}/", what="ECR", headers=headers, body=b"{}")
        first = next(iter(list_or_empty(reply.get("authorizationData"))), None)
        return _read_pair(text_or_empty(object_or_empty(first).get("authorizationToken")))

    async def _read_google(self, role: str, clock: Clock, identity: JobIdentity | None) -> Secret:
        if identity is None:
            return (await issue_gke_token(role, clock, self.clouds.gcp)()).value
        return await identity.read_token()

    async def _read_arm(self, client_id: str, clock: Clock, identity: JobIdentity | None) -> Secret:
        if identity is None:
            issue = issue_aks_token(_AZURE_RESOURCE, client_id, clock, self.clouds.azure)
            return (await issue()).value
        return await identity.read_token(_AZURE_RESOURCE)

    async def _log_in_acr(
        self, name: ImageName, client_id: str, clock: Clock, identity: JobIdentity | None
    ) -> Login:
        token = await self._read_arm(client_id, clock, identity)
        form = {
            "grant_type": "access_token",
            "service": name.host,
            "access_token": token.reveal(),
        }
        reply = await ask_cloud_json(
            "POST",
            f"{name.url}/oauth2/exchange",
            what=f"the registry {name.host}",
            headers={"Content-Type": _FORM},
            body=urlencode(form).encode(),
        )
        refresh = text_or_empty(reply.get("refresh_token"))
        if not refresh:
            raise AccessRefused(f"the registry {name.host} answered without a token")
        return Login(_AZURE_USER, Secret(refresh))


def name_ecr_api(region: str) -> str:
    """Return the host of ECR's API in a region; those of China have a domain of their own."""
    return f"api.ecr.{region}.amazonaws.com" + (".cn" if region.startswith("cn-") else "")


def find_role(roles: Mapping[str, str], name: str) -> str:
    """Return the role that a name stands for in the Stack's own outputs; raise if there is none."""
    if not name:
        return ""
    if name not in roles:
        message = f"the Stack has no role `{name}`: run the newest version of the Stack"
        raise WorkFailed(Reason.ACCESS_DENIED, message)
    return roles[name]


def _read_pair(token: str) -> Login:
    """Return the name and the password that ECR sends as one text."""
    try:
        username, _, password = base64.b64decode(token, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        username = password = ""
    if not password:
        raise AccessRefused("ECR answered without a token")
    return Login(username, Secret(password))
