"""Signatures of images, made with `cosign sign --key`: simple signing, or a Sigstore bundle."""

import base64
import binascii
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Final, NoReturn

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from exclave.base.json_values import (
    JsonObject,
    list_or_empty,
    object_or_empty,
    parse_object,
    text_or_empty,
)
from exclave.client.oci.documents import Descriptor, Manifest, read_document
from exclave.client.oci.repository import OciRepository
from exclave.client.problems import RemoteProblem
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason

PublicKey = ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey

_KEY: Final = "key"
_SIMPLE: Final = "application/vnd.dev.cosign.simplesigning.v1+json"
_SIGNATURE: Final = "dev.cosignproject.cosign/signature"
_BUNDLE: Final = "application/vnd.dev.sigstore.bundle"
_IN_TOTO: Final = "application/vnd.in-toto+json"
_MOST_BYTES: Final = 1 << 20
_MOST_SIGNATURES: Final = 50
_MISSING: Final = 404


def read_key(verification: Mapping[str, str]) -> PublicKey:
    """Return the key that a `[verification]` table names; refuse every other way to verify."""
    unknown = sorted(set(verification) - {_KEY})
    if unknown or _KEY not in verification:
        what = f"`{unknown[0]}`" if unknown else "a table without `key`"
        _refuse(
            f"[verification] with {what} is not supported: only signatures made with a key are"
            " verified; write `key` with the public key in PEM"
        )
    try:
        key = load_pem_public_key(verification[_KEY].encode())
    except ValueError:
        _refuse("`key` of [verification] is not a public key in PEM")
    if not isinstance(key, PublicKey):
        _refuse("`key` of [verification] is neither an ECDSA nor an Ed25519 key")
    return key


async def check_signed(
    repository: OciRepository, digest: str, key: PublicKey, folder: Path
) -> None:
    """Raise unless the image has a signature that the key made about its digest."""
    seen = 0
    async for content, signature in _list_signed(repository, digest, folder):
        seen += 1
        if _has_signed(key, content, signature) and _is_about(content, digest):
            return
    reason = f"none of its {seen} signatures was made with this key" if seen else "it has none"
    _refuse(f"{repository.name}@{digest} must be signed with the key of [verification]: {reason}")


async def _list_signed(
    repository: OciRepository, digest: str, folder: Path
) -> AsyncIterator[tuple[bytes, bytes]]:
    """Yield what was signed about an image, and the signatures."""
    for manifest in await _list_manifests(repository, digest):
        for layer in manifest.layers[:_MOST_SIGNATURES]:
            if layer.size > _MOST_BYTES:
                continue
            if layer.mediaType == _SIMPLE:
                content = await _read_layer(repository, layer, folder)
                yield content, _decode(layer.annotations.get(_SIGNATURE, ""))
            elif layer.mediaType.startswith(_BUNDLE):
                content = await _read_layer(repository, layer, folder)
                for signed in _read_bundle(content):
                    yield signed


async def _list_manifests(repository: OciRepository, digest: str) -> list[Manifest]:
    """Return the manifests that may hold signatures: cosign's tag, and referrers."""
    manifests = []
    try:
        tagged = await repository.fetch_manifest(f"{digest.replace(':', '-')}.sig")
        manifests.append(read_document(Manifest, tagged.data))
    except RemoteProblem as problem:
        if problem.status != _MISSING:
            raise
    for referrer in (await repository.list_referrers(digest))[:_MOST_SIGNATURES]:
        fetched = await repository.fetch_manifest(referrer.digest)
        manifests.append(read_document(Manifest, fetched.data))
    return manifests


async def _read_layer(repository: OciRepository, layer: Descriptor, folder: Path) -> bytes:
    file = folder / "signature"
    try:
        await repository.pull_blob(layer, file)
        return file.read_bytes()
    finally:
        file.unlink(missing_ok=True)


def _read_bundle(data: bytes) -> list[tuple[bytes, bytes]]:
    """Return what a Sigstore bundle holds signatures of: a DSSE envelope in its encoding."""
    try:
        bundle = parse_object(data, "the bundle")
    except ValueError:
        return []
    envelope = object_or_empty(bundle.get("dsseEnvelope"))
    kind = text_or_empty(envelope.get("payloadType"))
    payload = _decode(text_or_empty(envelope.get("payload")))
    if kind != _IN_TOTO:
        return []
    signed = b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(payload), payload)
    signatures = [object_or_empty(item) for item in list_or_empty(envelope.get("signatures"))]
    return [(signed, _decode(text_or_empty(item.get("sig")))) for item in signatures]


def _has_signed(key: PublicKey, content: bytes, signature: bytes) -> bool:
    try:
        if isinstance(key, ed25519.Ed25519PublicKey):
            key.verify(signature, content)
        else:
            key.verify(signature, content, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return False
    return True


def _is_about(content: bytes, digest: str) -> bool:
    """Return whether what was signed names the digest: cosign's payload, or a statement."""
    prefix = b"DSSEv1 "
    try:
        if content.startswith(prefix):
            return _names_subject(parse_object(content.split(b" ", 4)[4], "it"), digest)
        document = parse_object(content, "it")
    except ValueError:
        return False
    image = object_or_empty(object_or_empty(document.get("critical")).get("image"))
    return image.get("docker-manifest-digest") == digest


def _names_subject(statement: JsonObject, digest: str) -> bool:
    algorithm, _, value = digest.partition(":")
    subjects = [object_or_empty(item) for item in list_or_empty(statement.get("subject"))]
    return any(object_or_empty(item.get("digest")).get(algorithm) == value for item in subjects)


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return b""


def _refuse(message: str) -> NoReturn:
    raise WorkFailed(Reason.SIGNATURE_MISSING, message)
