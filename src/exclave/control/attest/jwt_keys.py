"""Signing keys of token issuers: fetched, kept for an hour, and JSON web tokens checked by them."""

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from weakref import WeakValueDictionary

import jwt
from jwt.types import Options

from exclave.base.clock import Clock
from exclave.base.json_values import Json, JsonObject
from exclave.control.attest.base import CloudUnreachable, EvidenceRefused
from exclave.control.attest.fetching import Fetcher

_MOST_BYTES: Final = 256 << 10
_KEPT_S: Final = 3600.0
_AGAIN_S: Final = 60.0
"""How soon keys may be fetched anew for a key id that is not among them."""
_MOST_ISSUERS: Final = 1000
_LEEWAY_S: Final = 60
_ALGORITHM: Final = "RS256"
_OPTIONS: Final[Options] = {
    "require": ["exp", "iat", "aud", "iss"],
    "verify_exp": False,
    "verify_iat": False,
    "verify_nbf": False,
}
"""Times are compared with our own clock."""


@dataclass(slots=True)
class _KeySet:
    keys: dict[str, jwt.PyJWK]
    fetched_at: float


class KeySets:
    """The keys of issuers by the address of their key set."""

    def __init__(self, fetcher: Fetcher, clock: Clock) -> None:
        self._fetcher = fetcher
        self._clock = clock
        self._sets: dict[str, _KeySet] = {}
        self._fetching: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def check_token(self, token: str, url: str, *, issuer: str, audience: str) -> JsonObject:
        """Return the claims of a token that this issuer signed for this audience, valid now."""
        key = await self._find_key(url, _read_key_id(token))
        try:
            claims: JsonObject = jwt.decode(
                token,
                key,
                algorithms=[_ALGORITHM],
                issuer=issuer,
                audience=audience,
                options=_OPTIONS,
            )
        except jwt.PyJWTError as error:
            detail = f"{type(error).__name__}: {error}"
            raise EvidenceRefused("token", detail[:300]) from error
        self._check_times(claims)
        return claims

    def _check_times(self, claims: JsonObject) -> None:
        now = self._clock.now().timestamp()
        begins = [claims.get("iat"), claims.get("nbf", claims.get("iat"))]
        times = [*begins, claims.get("exp")]
        if not all(isinstance(at, int | float) and not isinstance(at, bool) for at in times):
            raise EvidenceRefused("token", "its times are not numbers")
        issued, usable, ends = (float(str(at)) for at in times)
        if not max(issued, usable) - _LEEWAY_S <= now <= ends + _LEEWAY_S:
            raise EvidenceRefused("date", "the token is not valid now: check the clocks")

    async def _find_key(self, url: str, key_id: str) -> jwt.PyJWK:
        fetching = self._fetching.setdefault(url, asyncio.Lock())
        async with fetching:  # a slow issuer delays nobody else's
            kept = self._sets.get(url)
            age_s = float("inf") if kept is None else self._clock.monotonic() - kept.fetched_at
            unknown = kept is None or key_id not in kept.keys
            if kept is None or age_s > _KEPT_S or (unknown and age_s > _AGAIN_S):
                kept = await self._fetch(url)
        if key_id not in kept.keys:
            raise EvidenceRefused("token", "signed with a key that the issuer does not have")
        return kept.keys[key_id]

    async def _fetch(self, url: str) -> _KeySet:
        reply = await self._fetcher.fetch("GET", url, most_bytes=_MOST_BYTES)
        if reply.status != HTTPStatus.OK:
            raise CloudUnreachable(f"{url} answered {reply.status}")
        if len(self._sets) >= _MOST_ISSUERS:
            self._sets.clear()
        kept = _KeySet(_read_keys(reply.body, url), self._clock.monotonic())
        self._sets[url] = kept
        return kept


def _read_key_id(token: str) -> str:
    try:
        header = jwt.get_unverified_header(token)
    except jwt.PyJWTError as error:
        raise EvidenceRefused("token", f"not a token: {error}"[:300]) from error
    key_id = header.get("kid")
    if header.get("alg") != _ALGORITHM or not isinstance(key_id, str):
        raise EvidenceRefused("token", f"not signed with {_ALGORITHM} and a named key")
    return key_id


def _read_keys(body: bytes, url: str) -> dict[str, jwt.PyJWK]:
    """Return the RSA keys of a key set; keys of other kinds are left out."""
    try:
        document: Json = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise CloudUnreachable(f"{url} did not answer with JSON") from error
    listed = document.get("keys") if isinstance(document, dict) else None
    keys: dict[str, jwt.PyJWK] = {}
    for entry in listed if isinstance(listed, list) else []:
        if not isinstance(entry, dict) or entry.get("kty") != "RSA":
            continue
        key_id = entry.get("kid")
        if isinstance(key_id, str):
            with suppress(jwt.PyJWTError):
                keys[key_id] = jwt.PyJWK(entry, algorithm=_ALGORITHM)
    if not keys:
        raise CloudUnreachable(f"{url} has no keys")
    return keys
