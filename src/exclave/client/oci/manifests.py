"""Manifests of a repository and their referrers, also where a registry does not list these."""

from dataclasses import dataclass
from functools import partial

import httpx

from exclave.base.digests import canonical_json, digest_bytes, digest_like
from exclave.base.json_values import object_or_empty, parse_object, require_text
from exclave.client.oci.calls import OciCalls
from exclave.client.oci.documents import (
    INDEX,
    MANIFEST,
    CorruptContent,
    Descriptor,
    Index,
    Manifest,
    PushedManifest,
    read_document,
    write_fallback_tag,
)
from exclave.client.problems import RemoteProblem, UnexpectedReply

_DOCKER = "application/vnd.docker.distribution.manifest"
DOCKER_MANIFEST = f"{_DOCKER}.v2+json"
DOCKER_INDEX = f"{_DOCKER}.list.v2+json"
ACCEPT = {"Accept": f"{MANIFEST}, {INDEX}, {DOCKER_MANIFEST}, {DOCKER_INDEX}"}
MOST_REFERRERS = 1000
"""How many referrers of one manifest are read."""


@dataclass(frozen=True, slots=True)
class FetchedManifest:
    """A manifest as a registry sent it, verified against its digest."""

    digest: str
    media_type: str
    data: bytes


async def fetch_manifest(calls: OciCalls, repository: str, reference: str) -> FetchedManifest:
    """Return a manifest by digest or tag; with a digest, the content is verified."""
    path = calls.path(repository, f"manifests/{reference}")
    reply = await calls.repeat(lambda: calls.send("GET", path, repository, ACCEPT))
    is_digest = ":" in reference
    digest = digest_like(reference, reply.content) if is_digest else digest_bytes(reply.content)
    if is_digest and digest != reference:
        raise CorruptContent(f"the registry sent something else than manifest {reference}")
    media_type = reply.headers.get("Content-Type", "").partition(";")[0].strip()
    return FetchedManifest(digest, media_type, reply.content)


async def put_manifest(
    calls: OciCalls,
    repository: str,
    data: bytes,
    *,
    reference: str = "",
    media_type: str = MANIFEST,
) -> PushedManifest:
    """Store a manifest under a tag or a digest; without either, under its SHA-256 digest."""
    digest = digest_bytes(data)
    name = reference or digest
    path = calls.path(repository, f"manifests/{name}")
    headers = {"Content-Type": media_type}
    reply = await calls.repeat(lambda: calls.send("PUT", path, repository, headers, lambda: data))
    pushed = PushedManifest(name if ":" in name else digest, len(data), media_type)
    subject = object_or_empty(parse_object(data, "the manifest").get("subject"))
    if subject and "OCI-Subject" not in reply.headers:
        about = require_text(subject.get("digest"), "`subject.digest` of the manifest")
        await _note_referrer(calls, repository, about, data, pushed)
    return pushed


async def list_referrers(
    calls: OciCalls, repository: str, digest: str, artifact_type: str = ""
) -> list[Descriptor]:
    """Return the referrers of a manifest, also from registries with only the tag scheme."""
    path = calls.path(repository, f"referrers/{digest}")
    if artifact_type:
        path += f"?{httpx.QueryParams({'artifactType': artifact_type})}"
    try:
        referrers = await _list_pages(calls, repository, path)
    except RemoteProblem as problem:
        if problem.status != httpx.codes.NOT_FOUND:
            raise
        referrers = await _read_fallback(calls, repository, digest)
    return [referrer for referrer in referrers if artifact_type in {"", referrer.artifactType}]


async def _list_pages(calls: OciCalls, repository: str, path: str) -> list[Descriptor]:
    referrers: list[Descriptor] = []
    while path:
        send = partial(calls.send, "GET", path, repository)
        reply = await calls.repeat(send)
        referrers += read_document(Index, reply.content).manifests
        if len(referrers) > MOST_REFERRERS:
            raise UnexpectedReply(f"{path}: there are more than {MOST_REFERRERS} referrers")
        path = reply.links.get("next", {}).get("url", "")
    return referrers


async def _read_fallback(calls: OciCalls, repository: str, digest: str) -> list[Descriptor]:
    """Return the referrers that an index under the fallback tag lists.

    Some registries answer this tag with the image itself, so only a manifest that names the digest
    as its subject is believed to be a referrer.
    """
    try:
        fetched = await fetch_manifest(calls, repository, write_fallback_tag(digest))
    except RemoteProblem as problem:
        if problem.status != httpx.codes.NOT_FOUND:
            raise
        return []
    if fetched.digest == digest or "manifests" not in parse_object(fetched.data, "the index"):
        return []
    listed = read_document(Index, fetched.data).manifests[:MOST_REFERRERS]
    return [item for item in listed if await _has_subject(calls, repository, item, digest)]


async def _has_subject(calls: OciCalls, repository: str, referrer: Descriptor, digest: str) -> bool:
    try:
        fetched = await fetch_manifest(calls, repository, referrer.digest)
    except RemoteProblem as problem:
        if problem.status != httpx.codes.NOT_FOUND:
            raise
        return False
    subject = object_or_empty(parse_object(fetched.data, "the manifest").get("subject"))
    return subject.get("digest") == digest


async def _note_referrer(
    calls: OciCalls, repository: str, subject: str, data: bytes, pushed: PushedManifest
) -> None:
    """Keep the list of referrers ourselves, by tag, where the registry does not."""
    manifest = read_document(Manifest, data)
    listed = await _read_fallback(calls, repository, subject)
    if any(referrer.digest == pushed.digest for referrer in listed):
        return
    added = Descriptor(
        mediaType=pushed.media_type,
        digest=pushed.digest,
        size=pushed.size,
        artifactType=manifest.artifactType or manifest.config.mediaType,
        annotations=manifest.annotations,
    )
    document = {
        "schemaVersion": 2,
        "mediaType": INDEX,
        "manifests": [referrer.model_dump(exclude_defaults=True) for referrer in [*listed, added]],
    }
    await put_manifest(
        calls,
        repository,
        canonical_json(document),
        reference=write_fallback_tag(subject),
        media_type=INDEX,
    )
