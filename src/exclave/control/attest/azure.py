"""Evidence from Azure: a token of the runner's identity, and a document about its machine.

The token says who, but lives for a day and carries no nonce of ours. The document carries the
nonce, and says on which machine of which subscription it was made. Only both together prove that
the runner's identity is here, now.
"""

import asyncio
import base64
import binascii
import re
import warnings
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.utils import CryptographyDeprecationWarning
from cryptography.x509.verification import Store

from exclave.base.clock import Clock
from exclave.base.json_values import JsonObject, object_or_empty, parse_object, text_or_empty
from exclave.control.attest.base import (
    AnyEvidence,
    Claim,
    CloudUnreachable,
    EvidenceRefused,
)
from exclave.control.attest.fetching import Fetcher
from exclave.control.attest.jwt_keys import KeySets
from exclave.control.attest.pkcs7 import Signed, find_issuer_url, read_signed, verify_chain
from exclave.domain.install_identities import Proof
from exclave.domain.runner_principals import name_azure_identity
from exclave.domain.stacks import Cloud
from exclave.wire.attest import AZURE_AUDIENCE, AzureEvidence, write_azure_nonce

_KEYS: Final = "https://login.microsoftonline.com/{tenant}/discovery/keys"
_ISSUER: Final = "https://sts.windows.net/{tenant}/"
_SIGNER: Final = "metadata.azure.com"
_ISSUER_HOSTS: Final = frozenset({"www.microsoft.com", "cacerts.digicert.com"})
"""Where certificates of intermediate authorities may be fetched."""
_MOST_BYTES: Final = 64 << 10
_MOST_ISSUERS: Final = 100
_EARLY: Final = timedelta(minutes=5)
_PEM: Final = re.compile(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_TENANT: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_IDENTITY: Final = re.compile(
    r"/subscriptions/([0-9a-f-]{36})/resourcegroups/([^/]{1,90})"
    r"/providers/microsoft\.managedidentity/userassignedidentities/([^/]{1,128})"
)


@dataclass(frozen=True, slots=True)
class AzureAddresses:
    """Where Azure's keys and certificates are; tests have their own."""

    keys_url: str = ""
    """With `{tenant}` in it, or without."""
    issuer_hosts: frozenset[str] = _ISSUER_HOSTS


class AzureAttestor:
    """Verifies evidence from the public cloud of Azure."""

    def __init__(
        self,
        fetcher: Fetcher,
        keys: KeySets,
        clock: Clock,
        roots: Store,
        addresses: AzureAddresses | None = None,
    ) -> None:
        self._fetcher = fetcher
        self._keys = keys
        self._clock = clock
        self._roots = roots
        self._addresses = addresses or AzureAddresses()
        self._issuers: dict[str, x509.Certificate] = {}

    async def verify(self, claim: Claim, evidence: AnyEvidence) -> Proof:
        """Return whose machine it is."""
        if not isinstance(evidence, AzureEvidence):
            raise EvidenceRefused("identity", "the evidence is not of Azure")
        signed = await asyncio.to_thread(_read_document, evidence.document)
        tenant = claim.tenant or _read_tenant(evidence.token)
        claims = await self._keys.check_token(
            evidence.token,
            (self._addresses.keys_url or _KEYS).format(tenant=tenant),
            issuer=_ISSUER.format(tenant=tenant),
            audience=AZURE_AUDIENCE,
        )
        identity = _read_identity(claims, claim.install)
        machine = await self._check_document(signed, claim, identity[1])
        principal, subscription, group = identity
        _check_place(claims, subscription, group)
        return Proof(
            cloud=Cloud.AZURE,
            account=subscription,
            tenant=tenant,
            principal=principal,
            machine=machine,
        )

    async def _check_document(self, signed: Signed, claim: Claim, subscription: str) -> str:
        """Return the machine of a document that is genuine, for this claim, and valid now."""
        now = self._clock.now()
        issuers = await self._find_issuers(signed)
        await asyncio.to_thread(verify_chain, signed, issuers, self._roots, _SIGNER, now)
        facts = _parse(signed.content)
        if facts.get("nonce") != write_azure_nonce(claim.bind):
            raise EvidenceRefused("nonce", "the document is for another nonce, install or key")
        times = object_or_empty(facts.get("timeStamp"))
        made, ends = (_read_time(times.get(key)) for key in ("createdOn", "expiresOn"))
        if not made - _EARLY <= now <= ends:
            raise EvidenceRefused("date", "the document is not valid now: check the clocks")
        if text_or_empty(facts.get("subscriptionId")).lower() != subscription:
            raise EvidenceRefused("account", "the document is of another subscription")
        machine = text_or_empty(facts.get("vmId"))
        if not machine:
            raise EvidenceRefused("identity", "the document names no machine")
        return machine[:64]

    async def _find_issuers(self, signed: Signed) -> list[x509.Certificate]:
        """Return the certificate of the signer's issuer, which is fetched once and kept.

        Where it comes from decides nothing: the chain has to lead to a root that we trust.
        """
        url = find_issuer_url(signed.leaf)
        if not url or signed.others:
            return []
        parts = urlsplit(url)
        if (
            parts.scheme not in {"http", "https"}
            or parts.netloc not in self._addresses.issuer_hosts
        ):
            raise EvidenceRefused("document", f"its issuer is at `{url[:100]}`, which is not asked")
        if url not in self._issuers:
            reply = await self._fetcher.fetch("GET", url, most_bytes=_MOST_BYTES)
            if reply.status != HTTPStatus.OK:
                raise CloudUnreachable(f"{url} answered {reply.status}")
            if len(self._issuers) >= _MOST_ISSUERS:
                self._issuers.clear()
            self._issuers[url] = _load_certificate(reply.body)
        return [self._issuers[url]]


def load_roots(pem: bytes) -> Store:
    """Return the roots of a PEM file, without those that break the rules of RFC 5280.

    Bundles of public roots have some, from before the rules; no chain of Azure leads there.
    """
    roots = []
    for block in _PEM.findall(pem):
        with warnings.catch_warnings(), suppress(ValueError, CryptographyDeprecationWarning):
            warnings.simplefilter("error", CryptographyDeprecationWarning)
            roots.append(x509.load_pem_x509_certificate(block))
    return Store(roots)


def _read_document(text: str) -> Signed:
    try:
        data = base64.b64decode("".join(text.split()), validate=True)
    except binascii.Error as error:
        raise EvidenceRefused("document", "not Base64") from error
    return read_signed(data)


def _read_tenant(token: str) -> str:
    """Return the tenant that a token names, before anything of it is verified.

    It only chooses the keys; the issuer that is checked by them names it again.
    """
    try:
        padded = token.split(".")[1] + "=="
        claims = parse_object(base64.urlsafe_b64decode(padded), "the token")
    except (ValueError, IndexError) as error:
        raise EvidenceRefused("token", "not a token") from error
    tenant = text_or_empty(claims.get("tid"))
    if not _TENANT.fullmatch(tenant):
        raise EvidenceRefused("token", "the token names no tenant")
    return tenant


def _read_identity(claims: JsonObject, install: str) -> tuple[str, str, str]:
    """Return the resource id of the identity, its subscription and its resource group."""
    principal = text_or_empty(claims.get("xms_mirid")).lower()
    parts = _IDENTITY.fullmatch(principal)
    if parts is None or parts[3] != name_azure_identity(install).lower():
        raise EvidenceRefused("identity", f"`{principal[:200]}` is not the runner's identity")
    return principal, parts[1], parts[2]


def _check_place(claims: JsonObject, subscription: str, group: str) -> None:
    """Refuse a machine outside of the Stack's group, if the token says where it is."""
    machine = text_or_empty(claims.get("xms_az_rid")).lower()
    if machine and not machine.startswith(f"/subscriptions/{subscription}/resourcegroups/{group}/"):
        raise EvidenceRefused("identity", "the machine is in another resource group")


def _parse(content: bytes) -> JsonObject:
    try:
        return parse_object(content, "the document")
    except ValueError as error:
        raise EvidenceRefused("document", str(error)) from error


def _read_time(value: object) -> datetime:
    try:
        at = datetime.strptime(value if isinstance(value, str) else "", "%m/%d/%y %H:%M:%S %z")
        return at.astimezone(UTC)
    except ValueError as error:
        raise EvidenceRefused("date", "the document has no times") from error


def _load_certificate(data: bytes) -> x509.Certificate:
    try:
        if data.startswith(b"-----"):
            return x509.load_pem_x509_certificate(data)
        return x509.load_der_x509_certificate(data)
    except ValueError as error:
        raise CloudUnreachable("the issuer's certificate cannot be read") from error
