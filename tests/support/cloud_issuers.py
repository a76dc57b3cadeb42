"""Issuers of Google and Azure with keys of our own: tokens, key sets, signed documents."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization.pkcs7 import (
    PKCS7Options,
    PKCS7SignatureBuilder,
)
from cryptography.x509.oid import (
    AuthorityInformationAccessOID,
    ExtendedKeyUsageOID,
    NameOID,
)

KEY_ID = "key-1"


def make_rsa_key() -> RSAPrivateKey:
    return generate_private_key(65537, 2048)


@dataclass
class TokenIssuer:
    """Signs tokens, and publishes the key for them."""

    key: RSAPrivateKey = field(default_factory=make_rsa_key)
    key_id: str = KEY_ID

    def sign(self, claims: Mapping[str, Any], **header: str) -> str:
        headers = {"kid": self.key_id, **header}
        return jwt.encode(dict(claims), self.key, algorithm="RS256", headers=headers)

    def list_keys(self) -> dict[str, Any]:
        """Return the key set as issuers publish it."""
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key()))
        return {"keys": [{**public, "kid": self.key_id, "alg": "RS256", "use": "sig"}]}


@dataclass
class Authority:
    """A certificate and its key, which issues others."""

    name: str
    issuer: "Authority | None" = None
    key: RSAPrivateKey = field(default_factory=make_rsa_key)
    certificate: x509.Certificate = field(init=False)

    def __post_init__(self) -> None:
        self.certificate = (self.issuer or self).issue(self.name, self.key, is_authority=True)

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.DER)

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def issue(
        self,
        name: str,
        key: RSAPrivateKey,
        *,
        is_authority: bool = False,
        host: str = "",
        issuer_url: str = "",
        days: int = 90,
    ) -> x509.Certificate:
        """Return a certificate of a key, for a host or an authority."""
        now = datetime.now(UTC)
        mine = self.key.public_key()
        builder = (
            x509.CertificateBuilder()
            .subject_name(_name(name))
            .issuer_name(_name(self.name))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=days))
            .add_extension(x509.BasicConstraints(is_authority, None), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(mine), critical=False)
            .add_extension(_list_usages(is_authority=is_authority), critical=True)
        )
        if host:
            names = x509.SubjectAlternativeName([x509.DNSName(host)])
            builder = builder.add_extension(names, critical=False).add_extension(
                x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False
            )
        if issuer_url:
            access = x509.AccessDescription(
                AuthorityInformationAccessOID.CA_ISSUERS,
                x509.UniformResourceIdentifier(issuer_url),
            )
            builder = builder.add_extension(
                x509.AuthorityInformationAccess([access]), critical=False
            )
        return builder.sign(self.key, hashes.SHA256())


@dataclass
class Signer:
    """A certificate that signs documents, with its key."""

    certificate: x509.Certificate
    key: RSAPrivateKey

    def sign(
        self, facts: Mapping[str, Any], *, attributes: bool = True, twice: bool = False
    ) -> str:
        """Return facts as a signed document: PKCS#7 in Base64."""
        plain = PKCS7Options.NoCapabilities if attributes else PKCS7Options.NoAttributes
        options = [PKCS7Options.Binary, plain]
        builder = PKCS7SignatureBuilder().set_data(json.dumps(facts).encode())
        for _ in range(2 if twice else 1):
            builder = builder.add_signer(self.certificate, self.key, hashes.SHA256())
        signed = builder.sign(serialization.Encoding.DER, options)
        return base64.b64encode(signed).decode()


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _list_usages(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        encipher_only=False,
        decipher_only=False,
    )
