"""Tokens of Google GKE: those of the machine's service account, or of one that it may act for."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import quote

from exclave.base.clock import Clock
from exclave.base.json_values import JsonObject, text_or_empty
from exclave.base.secrets import Secret
from exclave.runner.cloud.exchange import ask_cloud_json
from exclave.runner.cloud.imds import METADATA, GcpMetadata
from exclave.runner.kube.access.cloud_http import refuse_access
from exclave.runner.kube.access.tokens import Issue, IssuedToken, write_bearer
from exclave.runner.kube.api.errors import AccessRefused

_EARLY_S: Final = 300.0
_LIFETIME_S: Final = 3600
_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"


@dataclass(frozen=True, slots=True)
class GcpEndpoints:
    """Where Google Cloud is; tests have their own."""

    metadata: str = METADATA
    credentials: str = "https://iamcredentials.googleapis.com"


def issue_gke_token(account: str, clock: Clock, endpoints: GcpEndpoints) -> Issue:
    """Return an issuer of tokens of a service account; the machine's own if none is given."""

    async def issue() -> IssuedToken:
        with refuse_access():
            token = await GcpMetadata(clock, endpoints.metadata).read_token()
            left_s = (token.expires_at - clock.now()).total_seconds()
            machine = IssuedToken(token.value, max(left_s - _EARLY_S, 1.0))
            return await _impersonate(machine, account, clock, endpoints) if account else machine

    return issue


async def _impersonate(
    machine: IssuedToken, account: str, clock: Clock, endpoints: GcpEndpoints
) -> IssuedToken:
    name = quote(account, safe="@")
    url = f"{endpoints.credentials}/v1/projects/-/serviceAccounts/{name}:generateAccessToken"
    reply = await ask_cloud_json(
        "POST",
        url,
        what=f"Google, asked for a token of `{account}`,",
        headers={"Content-Type": "application/json", **write_bearer(machine.value)},
        body=json.dumps({"scope": [_SCOPE], "lifetime": f"{_LIFETIME_S}s"}).encode(),
    )
    expires = text_or_empty(reply.get("expireTime"))
    try:
        left_s = (datetime.fromisoformat(expires) - clock.now()).total_seconds()
    except (ValueError, TypeError) as error:
        raise AccessRefused(
            f"Google answered with `{expires}` as the time of expiry, which is not a time"
        ) from error
    return _require_token(reply, "accessToken", left_s)


def _require_token(reply: JsonObject, key: str, left_s: float) -> IssuedToken:
    token = text_or_empty(reply.get(key))
    if not token:
        raise AccessRefused("Google answered without a token")
    return IssuedToken(Secret(token), max(left_s - _EARLY_S, 1.0))
