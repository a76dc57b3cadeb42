"""A client for any registry that implements the OCI distribution specification."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

import httpx

from exclave.base.clock import Clock
from exclave.base.digests import canonical_json, digest_bytes, digest_like
from exclave.base.ids import Randomness
from exclave.base.json_values import object_or_empty, parse_object, require_text
from exclave.client.oci.auth import Authorization, GetToken, NoteToken
from exclave.client.oci.auth import Login as Login
from exclave.client.oci.blobs import hash_file, pull_blob, push_blob
from exclave.client.oci.calls import PATIENCE, OciCalls
from exclave.client.oci.documents import (
    EMPTY,
    EMPTY_BYTES,
    INDEX,
    MANIFEST,
    CorruptContent,
    Descriptor,
    Index,
    Manifest,
    read_document,
    write_fallback_tag,
)
from exclave.client.oci.documents import PushedManifest as PushedManifest
from exclave.client.problems import RemoteProblem, UnexpectedReply
from exclave.client.retry import RetryPolicy

_DOCKER = "application/vnd.docker.distribution.manifest"
_ACCEPT = {"Accept": f"{MANIFEST}, {INDEX}, {_DOCKER}.v2+json, {_DOCKER}.list.v2+json"}
_MISSING = 404


@dataclass(frozen=True, slots=True)
class ArtifactConfig:
    """The config of an artifact, for types that have one: what pulls it reads this first."""

    media_type: str
    data: bytes


NO_CONFIG = ArtifactConfig(EMPTY, EMPTY_BYTES)


class OciClient:
    """Pushes and pulls by digest. Use as `async with OciClient(url, token) as client`.

    `base_url` is the registry's address and the folder of our repositories in it:
    `https://registry.example.com/vendor`. `token` is sent as it is; a `login` is exchanged for
    what the registry asks for. Calls are repeated for a while when it may help, and large
    transfers go on where they were cut.
    """

    def __init__(
        self,
        base_url: str,
        token: GetToken | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        *,
        login: Login | None = None,
        note_token: NoteToken | None = None,
        policy: RetryPolicy = PATIENCE,
        clock: Clock | None = None,
        randomness: Randomness | None = None,
    ) -> None:
        self._calls = OciCalls(
            base_url,
            Authorization(token, login, note_token),
            transport,
            policy=policy,
            clock=clock,
            randomness=randomness,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._calls.close()

    async def push_artifact(
        self,
        repository: str,
        *,
        artifact_type: str,
        layer: Path,
        layer_type: str,
        annotations: Mapping[str, str],
        subject: PushedManifest | None = None,
        tag: str | None = None,
        config: ArtifactConfig = NO_CONFIG,
    ) -> PushedManifest:
        """Push one file as an artifact; the same arguments give the same digest.

        An artifact without `artifact_type` has the type of its config.
        """
        digest, size = await asyncio.to_thread(hash_file, layer)
        config_digest = digest_bytes(config.data)
        await push_blob(self._calls, repository, config.data, config_digest, len(config.data))
        await push_blob(self._calls, repository, layer, digest, size)
        document: dict[str, object] = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            **({"artifactType": artifact_type} if artifact_type else {}),
            "config": {
                "mediaType": config.media_type,
                "digest": config_digest,
                "size": len(config.data),
            },
            "layers": [{"mediaType": layer_type, "digest": digest, "size": size}],
            "annotations": dict(annotations),
        }
        if subject is not None:
            document["subject"] = {
                "mediaType": subject.media_type,
                "digest": subject.digest,
                "size": subject.size,
            }
        return await self.put_manifest(repository, canonical_json(document), tag=tag)

    async def pull_layer(self, repository: str, digest: str, target: Path) -> Path:
        """Download the only layer of an artifact to a file and verify it.

        `digest` names the artifact's manifest. The file is created once it is
        complete and verified.
        """
        manifest = read_document(Manifest, await self.get_manifest(repository, digest))
        if len(manifest.layers) != 1:
            raise UnexpectedReply(
                f"artifact {digest} has {len(manifest.layers)} layers instead of one",
                hint="Check that the digest names an artifact that Exclave built.",
            )
        await pull_blob(self._calls, repository, manifest.layers[0], target)
        return target

    async def put_manifest(
        self, repository: str, data: bytes, *, tag: str | None = None, media_type: str = MANIFEST
    ) -> PushedManifest:
        """Store a manifest under its digest, and under a tag if there is one."""
        digest = digest_bytes(data)
        path = self._calls.path(repository, f"manifests/{tag or digest}")
        headers = {"Content-Type": media_type}
        reply = await self._calls.repeat(
            lambda: self._calls.send("PUT", path, repository, headers, lambda: data)
        )
        pushed = PushedManifest(digest, len(data), media_type)
        subject = object_or_empty(parse_object(data, "the manifest").get("subject"))
        if subject and "OCI-Subject" not in reply.headers:
            about = require_text(subject.get("digest"), "`subject.digest` of the manifest")
            await self._note_referrer(repository, about, data, pushed)
        return pushed

    async def get_manifest(self, repository: str, reference: str) -> bytes:
        """Return a manifest by digest or tag; with a digest, the content is verified."""
        path = self._calls.path(repository, f"manifests/{reference}")
        reply = await self._calls.repeat(lambda: self._calls.send("GET", path, repository, _ACCEPT))
        if ":" in reference and digest_like(reference, reply.content) != reference:
            raise CorruptContent(f"the registry sent something else than manifest {reference}")
        return reply.content

    async def list_referrers(
        self, repository: str, digest: str, artifact_type: str = ""
    ) -> list[Descriptor]:
        """Return the referrers of a manifest, also from registries with only the tag scheme."""
        path = self._calls.path(repository, f"referrers/{digest}")
        if artifact_type:
            path += f"?{httpx.QueryParams({'artifactType': artifact_type})}"
        try:
            referrers = await self._list_pages(repository, path)
        except RemoteProblem as problem:
            if problem.status != _MISSING:
                raise
            referrers = await self._read_fallback(repository, digest)
        return [referrer for referrer in referrers if artifact_type in {"", referrer.artifactType}]

    async def _list_pages(self, repository: str, path: str) -> list[Descriptor]:
        referrers: list[Descriptor] = []
        while path:
            send = partial(self._calls.send, "GET", path, repository)
            reply = await self._calls.repeat(send)
            referrers += read_document(Index, reply.content).manifests
            path = reply.links.get("next", {}).get("url", "")
        return referrers

    async def _read_fallback(self, repository: str, digest: str) -> list[Descriptor]:
        try:
            data = await self.get_manifest(repository, write_fallback_tag(digest))
        except RemoteProblem as problem:
            if problem.status != _MISSING:
                raise
            return []
        return read_document(Index, data).manifests

    async def _note_referrer(
        self, repository: str, subject: str, data: bytes, pushed: PushedManifest
    ) -> None:
        """Keep the list of referrers ourselves, by tag, where the registry does not."""
        manifest = read_document(Manifest, data)
        listed = await self._read_fallback(repository, subject)
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
            "manifests": [
                referrer.model_dump(exclude_defaults=True) for referrer in [*listed, added]
            ],
        }
        tag = write_fallback_tag(subject)
        await self.put_manifest(repository, canonical_json(document), tag=tag, media_type=INDEX)
