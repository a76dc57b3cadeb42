"""Canonical JSON and content digests, which approvals, envelopes and audit chains rely on."""

import hashlib
import json

_CANONICAL = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)


def canonical_json(value: object) -> bytes:
    """Return canonical JSON: sorted keys, no spaces, UTF-8, no NaN."""
    return _CANONICAL.encode(value).encode()


def digest_bytes(data: bytes) -> str:
    """Return the SHA-256 digest of content, `sha256:…`."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def digest_json(value: object) -> str:
    """Return the digest of a JSON value in its canonical form."""
    return digest_bytes(canonical_json(value))


def hash_token(token: str) -> str:
    """Return the hash of a token for storage; 256 random bits need no slow password hash."""
    return hashlib.sha256(token.encode()).hexdigest()
