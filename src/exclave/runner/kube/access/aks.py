"""Tokens of Azure AKS: those of a managed identity of the machine."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from exclave.base.clock import Clock
from exclave.base.json_values import text_or_empty
from exclave.base.secrets import Secret
from exclave.runner.kube.access.cloud_http import ask_cloud_json
from exclave.runner.kube.access.tokens import Issue, IssuedToken
from exclave.runner.kube.api.errors import AccessRefused

_EARLY_S: Final = 300.0
_VERSION: Final = "2018-02-01"


@dataclass(frozen=True, slots=True)
class AzureEndpoints:
    """Where Azure is; tests have their own."""

    metadata: str = "http://169.254.169.254"


def issue_aks_token(
    server_id: str, client_id: str, clock: Clock, endpoints: AzureEndpoints
) -> Issue:
    """Return an issuer of tokens of an identity; without `client_id`, of the machine's only one."""
    query = {"api-version": _VERSION, "resource": server_id}
    if client_id:
        query["client_id"] = client_id

    async def issue() -> IssuedToken:
        reply = await ask_cloud_json(
            "GET",
            f"{endpoints.metadata}/metadata/identity/oauth2/token?{urlencode(query)}",
            what="the metadata server of the machine",
            headers={"Metadata": "true"},
        )
        token, expires = text_or_empty(reply.get("access_token")), str(reply.get("expires_on"))
        if not token or not expires.isdecimal():
            raise AccessRefused("Azure answered without a token")
        left_s = float(expires) - clock.now().timestamp()
        return IssuedToken(Secret(token), max(left_s - _EARLY_S, 1.0))

    return issue
