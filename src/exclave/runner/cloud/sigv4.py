"""Signatures of AWS requests (Signature Version 4), which the runner makes without an SDK."""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import quote

from exclave.base.secrets import Secret

_ALGORITHM: Final = "AWS4-HMAC-SHA256"


@dataclass(frozen=True, slots=True)
class AwsKeys:
    """Temporary keys of a role."""

    access_key: str
    secret_key: Secret
    session_token: Secret | None = None


@dataclass(frozen=True, slots=True)
class SignedFor:
    """What a signature is valid for."""

    service: str
    region: str
    at: datetime

    @property
    def stamp(self) -> str:
        """The time as AWS writes it."""
        return self.at.strftime("%Y%m%dT%H%M%SZ")

    @property
    def scope(self) -> str:
        """The scope of the signing key."""
        return f"{self.at:%Y%m%d}/{self.region}/{self.service}/aws4_request"


def presign(
    keys: AwsKeys,
    scope: SignedFor,
    host: str,
    query: Mapping[str, str],
    headers: Mapping[str, str],
    *,
    expires_s: int,
) -> str:
    """Return a GET URL that carries its own signature; `headers` have to be sent with it."""
    signed = {"host": host, **headers}
    names = ";".join(sorted(signed))
    whole = {
        **query,
        "X-Amz-Algorithm": _ALGORITHM,
        "X-Amz-Credential": f"{keys.access_key}/{scope.scope}",
        "X-Amz-Date": scope.stamp,
        "X-Amz-Expires": str(expires_s),
        "X-Amz-SignedHeaders": names,
    }
    if keys.session_token is not None:
        whole["X-Amz-Security-Token"] = keys.session_token.reveal()
    text = _write_query(whole)
    signature = _sign(keys, scope, _canonical("GET", text, signed, b""))
    return f"https://{host}/?{text}&X-Amz-Signature={signature}"


def sign_post(
    keys: AwsKeys,
    scope: SignedFor,
    host: str,
    body: bytes,
    content_type: str,
    more: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the headers of a signed POST to `/`; `more` are headers that are signed too."""
    signed = {"content-type": content_type, "host": host, "x-amz-date": scope.stamp, **(more or {})}
    if keys.session_token is not None:
        signed["x-amz-security-token"] = keys.session_token.reveal()
    signature = _sign(keys, scope, _canonical("POST", "", signed, body))
    names = ";".join(sorted(signed))
    credential = f"{keys.access_key}/{scope.scope}"
    return {
        **signed,
        "authorization": (
            f"{_ALGORITHM} Credential={credential}, SignedHeaders={names}, Signature={signature}"
        ),
    }


def _canonical(method: str, query: str, headers: Mapping[str, str], body: bytes) -> str:
    lines = "".join(f"{name}:{value}\n" for name, value in sorted(headers.items()))
    names = ";".join(sorted(headers))
    return "\n".join((method, "/", query, lines, names, hashlib.sha256(body).hexdigest()))


def _sign(keys: AwsKeys, scope: SignedFor, request: str) -> str:
    digest = hashlib.sha256(request.encode()).hexdigest()
    key = f"AWS4{keys.secret_key.reveal()}".encode()
    for part in scope.scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    text = f"{_ALGORITHM}\n{scope.stamp}\n{scope.scope}\n{digest}"
    return hmac.digest(key, text.encode(), "sha256").hex()


def _write_query(pairs: Mapping[str, str]) -> str:
    return "&".join(
        f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}"
        for name, value in sorted(pairs.items())
    )
