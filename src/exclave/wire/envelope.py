"""Signed envelopes: compact JWS with Ed25519 over canonical JSON, and the chain of signing keys."""

import base64
import binascii
import json
from collections.abc import Mapping
from typing import ClassVar

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from exclave.base.digests import canonical_json
from exclave.base.errors import Kind, Problem
from exclave.wire.runner import Dispatch, ServerKey

TYPE = "exclave-dispatch+jws"


class EnvelopeRefused(Problem):
    """The envelope is not what a trusted control plane signed for this runner, now."""

    kind: ClassVar = Kind.FORBIDDEN
    code: ClassVar = "envelope_refused"


def encode_bytes(data: bytes) -> str:
    """Return bytes in base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode_bytes(text: str) -> bytes:
    """Return the bytes of base64url without padding; anything else is refused."""
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        message = "not base64url"
        raise EnvelopeRefused(message) from error
    if encode_bytes(data) != text:
        message = "base64url is not in its canonical form"
        raise EnvelopeRefused(message)
    return data


def public_text(key: Ed25519PrivateKey | Ed25519PublicKey) -> str:
    """Return the public half of a key as text."""
    public = key.public_key() if isinstance(key, Ed25519PrivateKey) else key
    raw = public.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    return encode_bytes(raw)


def read_public(text: str) -> Ed25519PublicKey:
    """Return the public key of its text."""
    return Ed25519PublicKey.from_public_bytes(decode_bytes(text))


def verify_signature(public_key: str, message: bytes, signature: str) -> bool:
    """Return whether the signature is this key's over exactly these bytes."""
    try:
        read_public(public_key).verify(decode_bytes(signature), message)
    except (InvalidSignature, EnvelopeRefused, ValueError):
        return False
    return True


def sign_dispatch(key: Ed25519PrivateKey, kid: str, dispatch: Dispatch) -> str:
    """Return the signed envelope of a dispatch."""
    header = encode_bytes(canonical_json({"alg": "EdDSA", "kid": kid, "typ": TYPE}))
    payload = encode_bytes(canonical_json(dispatch.model_dump(mode="json")))
    signature = encode_bytes(key.sign(f"{header}.{payload}".encode()))
    return f"{header}.{payload}.{signature}"


def sign_detached(key: Ed25519PrivateKey, kid: str, kind: str, payload: bytes) -> str:
    """Return a compact JWS of a payload without the payload, which its reader has or can write.

    `kind` is its type: a signature of one kind is none of another.
    """
    header = encode_bytes(canonical_json({"alg": "EdDSA", "kid": kid, "typ": kind}))
    signature = encode_bytes(key.sign(f"{header}.{encode_bytes(payload)}".encode()))
    return f"{header}..{signature}"


def read_detached_kid(signed: str, kind: str) -> str:
    """Return the id of the key that a detached signature claims to be made with."""
    return _read_header(_split_detached(signed)[0], kind)


def verify_detached(signed: str, kind: str, payload: bytes, trusted: Mapping[str, str]) -> None:
    """Raise unless a trusted key has signed exactly this payload, as this kind."""
    header, signature = _split_detached(signed)
    kid = _read_header(header, kind)
    if kid not in trusted:
        message = f"signed by the unknown key `{kid}`"
        raise EnvelopeRefused(message)
    if not verify_signature(trusted[kid], f"{header}.{encode_bytes(payload)}".encode(), signature):
        message = "the signature does not match"
        raise EnvelopeRefused(message)


def read_kid(envelope: str) -> str:
    """Return the id of the key that an envelope claims to be signed by; not verified yet."""
    return _read_header(_split(envelope)[0])


def open_envelope(envelope: str, trusted: Mapping[str, str]) -> Dispatch:
    """Verify the signature by a trusted key, then return the strictly parsed payload."""
    header, payload, signature = _split(envelope)
    kid = _read_header(header)
    if kid not in trusted:
        message = f"signed by the unknown key `{kid}`"
        raise EnvelopeRefused(message)
    if not verify_signature(trusted[kid], f"{header}.{payload}".encode(), signature):
        message = "the signature does not match"
        raise EnvelopeRefused(message)
    try:
        return Dispatch.model_validate_json(decode_bytes(payload))
    except ValueError as error:
        message = "the payload has an unknown or malformed field"
        raise EnvelopeRefused(message) from error


def vouch_message(kid: str, public_key: str) -> bytes:
    """Return the message that one signing key signs to vouch for the next."""
    return f"exclave-key-v1\n{kid}\n{public_key}".encode()


def extend_trust(pinned: Mapping[str, str], offered: list[ServerKey]) -> dict[str, str]:
    """Return the trusted keys and those of the chain that a trusted key has signed."""
    trusted = dict(pinned)
    for key in offered:
        voucher = trusted.get(key.signed_by or "")
        if key.kid in trusted or voucher is None or key.signature is None:
            continue
        if verify_signature(voucher, vouch_message(key.kid, key.public_key), key.signature):
            trusted[key.kid] = key.public_key
    return trusted


def _split(envelope: str) -> tuple[str, str, str]:
    parts = envelope.split(".")
    if len(parts) != 3 or not all(parts):  # noqa: PLR2004 - a compact JWS has three parts
        message = "not a signed envelope"
        raise EnvelopeRefused(message)
    return parts[0], parts[1], parts[2]


def _split_detached(signed: str) -> tuple[str, str]:
    header, mark, signature = signed.partition("..")
    if not (header and mark and signature) or "." in signature:
        message = "not a detached signature"
        raise EnvelopeRefused(message)
    return header, signature


def _read_header(text: str, kind: str = TYPE) -> str:
    try:
        header = json.loads(decode_bytes(text))
    except ValueError as error:
        message = "the header is not JSON"
        raise EnvelopeRefused(message) from error
    expected = {"alg", "kid", "typ"}
    if not isinstance(header, dict) or set(header) != expected:
        message = "the header has unknown or missing fields"
        raise EnvelopeRefused(message)
    if header["alg"] != "EdDSA" or header["typ"] != kind or not isinstance(header["kid"], str):
        message = "the header names another algorithm or type"
        raise EnvelopeRefused(message)
    return header["kid"]
