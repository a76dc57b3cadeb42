"""Tokens of Google GKE: those of the machine's service account, or of one that it may act for."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import quote

from exclave.base.clock import Clock
from exclave.base.json_values import JsonObject, text_or_empty
from exclave.base.secrets import Secret
from exclave.runner.kube.access.cloud_http import ask_cloud_json
from exclave.runner.kube.access.tokens import Issue, IssuedToken, write_bearer
from exclave.runner.kube.api.errors import AccessRefused

_EARLY_S: Final = 300.0
_LIFETIME_S: Final = 3600
_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"


@dataclass(frozen=True, slots=True)
class GcpEndpoints:
    """Where Google Cloud is; tests have their own."""

    metadata: str = "http://metadata.google.internal"
    credentials: str = "https://iamcredentials.googleapis.com"


def issue_gke_token(account: str, clock: Clock, endpoints: GcpEndpoints) -> Issue:
    """Return an issuer of tokens of a service account; the machine's own if none is given."""

    async def issue() -> IssuedToken:
        machine = await _read_machine_token(endpoints)
        return await _impersonate(machine, account, clock, endpoints) if account else machine

    return issue


async def _read_machine_token(endpoints: GcpEndpoints) -> IssuedToken:
    reply = await ask_cloud_json(
        "GET",
        f"{endpoints.metadata}/computeMetadata/v1/instance/service-accounts/default/token",
        what="the metadata server of the machine",
        headers={"Metadata-Flavor": "Google"},
    )
    left_s = reply.get("expires_in")
    seconds = float(left_s) if isinstance(left_s, int | float) else 0.0
    return _require_token(reply, "access_token", seconds)


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
