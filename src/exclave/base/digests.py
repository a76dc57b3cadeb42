"""Canonical JSON and content digests: what approvals, envelopes and audit chains are bound to."""

import hashlib
import json

_CANONICAL = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)


def canonical_json(value: object) -> bytes:
    """Write a JSON value in its one canonical form: sorted keys, no spaces, UTF-8, no NaN."""
    return _CANONICAL.encode(value).encode()


def digest_bytes(data: bytes) -> str:
    """Name content by its SHA-256."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def digest_json(value: object) -> str:
    """Name a JSON value by the digest of its canonical form."""
    return digest_bytes(canonical_json(value))


def hash_token(token: str) -> str:
    """Hash a high-entropy token for storage; a slow password hash would add nothing to 256 bits."""
    return hashlib.sha256(token.encode()).hexdigest()
