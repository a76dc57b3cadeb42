"""A client for any registry that implements the OCI distribution specification."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import httpx

from exclave.base.clock import Clock
from exclave.base.digests import canonical_json, digest_bytes
from exclave.base.ids import Randomness
from exclave.client.oci.auth import Authorization, GetToken, NoteToken
from exclave.client.oci.auth import Login as Login
from exclave.client.oci.calls import PATIENCE, OciCalls
from exclave.client.oci.documents import (
    EMPTY,
    EMPTY_BYTES,
    MANIFEST,
    Descriptor,
    Manifest,
    read_document,
)
from exclave.client.oci.documents import PushedManifest as PushedManifest
from exclave.client.oci.downloads import pull_blob
from exclave.client.oci.manifests import fetch_manifest, list_referrers, put_manifest
from exclave.client.oci.repository import OciRepository
from exclave.client.oci.uploads import hash_file, push_blob
from exclave.client.problems import UnexpectedReply
from exclave.client.retry import RetryPolicy


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
        return await put_manifest(
            self._calls, repository, data, reference=tag or "", media_type=media_type
        )

    async def get_manifest(self, repository: str, reference: str) -> bytes:
        """Return a manifest by digest or tag; with a digest, the content is verified."""
        return (await fetch_manifest(self._calls, repository, reference)).data

    async def list_referrers(
        self, repository: str, digest: str, artifact_type: str = ""
    ) -> list[Descriptor]:
        """Return the referrers of a manifest, also from registries with only the tag scheme."""
        return await list_referrers(self._calls, repository, digest, artifact_type)

    def open_repository(self, repository: str) -> OciRepository:
        """Return one repository, for copying into it or out of it."""
        return OciRepository(self._calls, repository)
