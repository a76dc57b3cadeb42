"""Canonical JSON and content digests, which approvals, envelopes and audit chains rely on."""

import hashlib
import json
from typing import Protocol

_CANONICAL = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)


def canonical_json(value: object) -> bytes:
    """Return canonical JSON: sorted keys, no spaces, UTF-8, no NaN."""
    return _CANONICAL.encode(value).encode()


class ContentHash(Protocol):
    """A hash of content that arrives in chunks."""

    def update(self, data: bytes, /) -> None:
        """Add a chunk."""
        ...

    def hexdigest(self) -> str:
        """Return the hash of all chunks so far, in hexadecimal."""
        ...

    def copy(self) -> "ContentHash":
        """Return a hash of the same chunks that goes its own way."""
        ...


def digest_bytes(data: bytes) -> str:
    """Return the SHA-256 digest of content, `sha256:…`."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def digest_like(digest: str, data: bytes) -> str:
    """Return the digest of content with the algorithm of another digest."""
    hashed = start_hash(digest)
    hashed.update(data)
    return write_digest(digest, hashed)


def start_hash(digest: str) -> ContentHash:
    """Return an empty hash of a digest's algorithm: SHA-512 for `sha512:…`, else SHA-256."""
    return hashlib.sha512() if digest.startswith("sha512:") else hashlib.sha256()


def write_digest(digest: str, hashed: ContentHash) -> str:
    """Return what was hashed as a digest of the same algorithm as another one."""
    return f"{digest.partition(':')[0]}:{hashed.hexdigest()}"


def digest_json(value: object) -> str:
    """Return the digest of a JSON value in its canonical form."""
    return digest_bytes(canonical_json(value))


def hash_token(token: str) -> str:
    """Return the hash of a token for storage; 256 random bits need no slow password hash."""
    return hashlib.sha256(token.encode()).hexdigest()
