"""PKCS#7: the content that one certificate has signed, and the chain of that certificate.

`cryptography` reads the certificates of such a document, but does not verify its signature.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.x509.oid import AuthorityInformationAccessOID, ExtensionOID
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError
from pyasn1.codec.ber import decoder  # type: ignore[import-untyped]
from pyasn1.codec.der import encoder  # type: ignore[import-untyped]
from pyasn1.error import PyAsn1Error  # type: ignore[import-untyped]
from pyasn1_modules import rfc5652  # type: ignore[import-untyped]

from exclave.control.attest.base import EvidenceRefused

_MESSAGE_DIGEST: Final = "1.2.840.113549.1.9.4"
_MOST_CERTIFICATES: Final = 4
_SET: Final = b"\x31"
"""Attributes are signed as a set, but sent under another tag."""


@dataclass(frozen=True, slots=True)
class Signed:
    """The content of a document, and the certificate whose key signed it."""

    content: bytes
    leaf: x509.Certificate
    others: tuple[x509.Certificate, ...]
    """Certificates that came along; none of them is trusted for that."""


def read_signed(data: bytes) -> Signed:
    """Return what a document of one signer contains; its chain is not verified yet."""
    try:
        return _read(data)
    except (PyAsn1Error, ValueError, TypeError, LookupError, RecursionError) as error:
        raise EvidenceRefused("document", f"not PKCS#7: {type(error).__name__}") from error
    except (InvalidSignature, UnsupportedAlgorithm) as error:
        raise EvidenceRefused("document", "the signature is wrong") from error


def verify_chain(
    signed: Signed, issuers: Sequence[x509.Certificate], roots: Store, name: str, now: datetime
) -> None:
    """Raise unless the signing certificate is of `name`, valid now, and leads to a root."""
    verifier = PolicyBuilder().store(roots).time(now).build_server_verifier(x509.DNSName(name))
    try:
        verifier.verify(signed.leaf, [*signed.others, *issuers])
    except VerificationError as error:
        raise EvidenceRefused("document", f"not signed for {name}: {error}"[:300]) from error


def find_issuer_url(leaf: x509.Certificate) -> str:
    """Return where a certificate says that its issuer's is; nothing if it does not say."""
    try:
        access = leaf.extensions.get_extension_for_oid(
            ExtensionOID.AUTHORITY_INFORMATION_ACCESS
        ).value
    except (x509.ExtensionNotFound, ValueError):
        return ""
    if not isinstance(access, x509.AuthorityInformationAccess):
        return ""
    for description in access:
        location = description.access_location
        if description.access_method == AuthorityInformationAccessOID.CA_ISSUERS and isinstance(
            location, x509.UniformResourceIdentifier
        ):
            return location.value
    return ""


def _read(data: bytes) -> Signed:
    info, rest = decoder.decode(data, asn1Spec=rfc5652.ContentInfo())
    if rest or info["contentType"] != rfc5652.id_signedData:
        raise ValueError("not signed data")
    document, rest = decoder.decode(info["content"], asn1Spec=rfc5652.SignedData())
    if rest or len(document["signerInfos"]) != 1:
        raise ValueError("not one signer")
    if not 1 <= len(document["certificates"]) <= _MOST_CERTIFICATES:
        raise ValueError("too few or too many certificates")
    certificates = [
        x509.load_der_x509_certificate(encoder.encode(choice["certificate"]))
        for choice in document["certificates"]
    ]
    signer = document["signerInfos"][0]
    content = bytes(document["encapContentInfo"]["eContent"])
    leaf = _find_signer(signer, certificates)
    _verify(leaf, bytes(signer["signature"]), _find_signed_bytes(signer, content))
    others = tuple(other for other in certificates if other is not leaf)
    return Signed(content, leaf, others)


def _find_signer(
    signer: Any,
    certificates: Sequence[x509.Certificate],
) -> x509.Certificate:
    """Return the certificate that the signer names by its serial number."""
    serial = int(signer["sid"]["issuerAndSerialNumber"]["serialNumber"])
    for certificate in certificates:
        if certificate.serial_number == serial:
            return certificate
    raise LookupError("the certificate of the signer is missing")


def _find_signed_bytes(signer: Any, content: bytes) -> bytes:
    """Return what the signature is over: the content, or attributes that contain its digest.

    The digest is always SHA-256: Azure writes the algorithm of the signature where that of the
    digest belongs.
    """
    attributes = signer["signedAttrs"]
    if not attributes.hasValue() or not len(attributes):
        return content
    values = {str(entry["attrType"]): entry["attrValues"] for entry in attributes}
    digest, _ = decoder.decode(values[_MESSAGE_DIGEST][0])
    if bytes(digest) != hashlib.sha256(content).digest():
        raise ValueError("the digest is of other content")
    as_set = attributes.clone(tagSet=rfc5652.SignedAttributes.tagSet, cloneValueFlag=True)
    return _SET + bytes(encoder.encode(as_set))[1:]


def _verify(leaf: x509.Certificate, signature: bytes, signed: bytes) -> None:
    key = leaf.public_key()
    if not isinstance(key, rsa.RSAPublicKey):
        raise TypeError("not an RSA key")
    key.verify(signature, signed, padding.PKCS1v15(), hashes.SHA256())
