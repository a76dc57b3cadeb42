"""One repository of a registry: the calls that copying an image consists of."""

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx
from pydantic import BaseModel, ConfigDict, ValidationError

from exclave.client.oci import manifests
from exclave.client.oci.blob_copy import Observer, copy_blob
from exclave.client.oci.calls import OciCalls
from exclave.client.oci.documents import Descriptor, PushedManifest, read_location
from exclave.client.oci.downloads import pull_blob
from exclave.client.oci.manifests import ACCEPT, FetchedManifest
from exclave.client.oci.uploads import push_blob
from exclave.client.problems import RemoteProblem, UnexpectedReply

MOST_TAGS = 20_000
"""How many tags of a repository are read."""


class _Tags(BaseModel):
    model_config = ConfigDict(extra="ignore")

    tags: list[str] | None = None


@dataclass(frozen=True, slots=True)
class OciRepository:
    """A repository; made by `OciClient.open_repository`."""

    calls: OciCalls
    path: str
    """Its name below the folder of the client."""

    @property
    def registry(self) -> str:
        """The address of its registry."""
        return self.calls.registry

    @property
    def name(self) -> str:
        """Its full name in the registry."""
        return self.calls.name(self.path)

    async def fetch_manifest(self, reference: str) -> FetchedManifest:
        """Return a manifest by digest or tag."""
        return await manifests.fetch_manifest(self.calls, self.path, reference)

    async def put_manifest(
        self, data: bytes, *, media_type: str, reference: str = ""
    ) -> PushedManifest:
        """Store a manifest under a tag or a digest."""
        return await manifests.put_manifest(
            self.calls, self.path, data, reference=reference, media_type=media_type
        )

    async def list_referrers(self, digest: str) -> list[Descriptor]:
        """Return the referrers of a manifest."""
        return await manifests.list_referrers(self.calls, self.path, digest)

    async def has_manifest(self, reference: str) -> bool:
        """Return whether the repository has a manifest or a tag."""
        path = self.calls.path(self.path, f"manifests/{reference}")
        return await self._is_there(path)

    async def has_blob(self, digest: str) -> bool:
        """Return whether the repository has a blob."""
        return await self._is_there(self.calls.path(self.path, f"blobs/{digest}"))

    async def find_blob_size(self, digest: str) -> int | None:
        """Return the size of a blob as the registry says; None if there is no such blob."""
        path = self.calls.path(self.path, f"blobs/{digest}")
        try:
            return await self.calls.repeat(lambda: self._read_size(path))
        except RemoteProblem as problem:
            if problem.status != httpx.codes.NOT_FOUND:
                raise
            return None

    async def find_tag(self, tag: str) -> str | None:
        """Return the digest that a tag stands for; None if there is no such tag."""
        try:
            return (await self.fetch_manifest(tag)).digest
        except RemoteProblem as problem:
            if problem.status != httpx.codes.NOT_FOUND:
                raise
            return None

    async def pull_blob(self, blob: Descriptor, target: Path) -> None:
        """Download a blob to a file; the file is created once it is complete and verified."""
        await pull_blob(self.calls, self.path, blob, target)

    async def push_blob(self, blob: Descriptor, file: Path) -> None:
        """Upload a blob that the repository does not have."""
        await push_blob(self.calls, self.path, file, blob.digest, blob.size, is_missing=True)

    async def copy_blob(
        self, blob: Descriptor, source: "OciRepository", observer: Observer
    ) -> None:
        """Copy a blob that the repository does not have from another one."""
        await copy_blob((source.calls, source.path), (self.calls, self.path), blob, observer)

    async def mount_blob(self, digest: str, source: str) -> bool:
        """Mount a blob of another repository of the registry; return whether it is mounted.

        `source` is the full name of the other repository. A registry that does not mount it begins
        an upload instead, which is cancelled.
        """
        query = httpx.QueryParams({"mount": digest, "from": source})
        path = self.calls.path(self.path, f"blobs/uploads/?{query}")
        reply = await self.calls.repeat(lambda: self.calls.send("POST", path, self.path))
        if reply.status_code == httpx.codes.CREATED:
            return True
        # A registry forgets an upload that nothing arrives for, so a refusal does no harm.
        with suppress(RemoteProblem, UnexpectedReply):
            await self.calls.send("DELETE", read_location(reply), self.path)
        return False

    async def list_tags(self) -> list[str]:
        """Return the tags of the repository."""
        tags: list[str] = []
        path = self.calls.path(self.path, "tags/list?n=1000")
        while path:
            send = partial(self.calls.send, "GET", path, self.path)
            reply = await self.calls.repeat(send)
            try:
                tags += _Tags.model_validate_json(reply.content).tags or []
            except ValidationError as error:
                raise UnexpectedReply(f"{path} was not answered with a list of tags") from error
            if len(tags) > MOST_TAGS:
                raise UnexpectedReply(f"{self.name} has more than {MOST_TAGS} tags")
            path = reply.links.get("next", {}).get("url", "")
        return tags

    async def delete_tag(self, tag: str) -> None:
        """Delete a tag, if it is there."""
        path = self.calls.path(self.path, f"manifests/{tag}")
        try:
            await self.calls.repeat(lambda: self.calls.send("DELETE", path, self.path))
        except RemoteProblem as problem:
            if problem.status != httpx.codes.NOT_FOUND:
                raise

    async def _read_size(self, path: str) -> int:
        async with self.calls.open("HEAD", path, self.path) as reply:
            size = reply.headers.get("Content-Length", "")
            if not size.isdecimal():
                raise UnexpectedReply(f"{path} was answered without a size")
            return int(size)

    async def _is_there(self, path: str) -> bool:
        try:
            await self.calls.repeat(lambda: self.calls.send("HEAD", path, self.path, ACCEPT))
        except RemoteProblem as problem:
            if problem.status != httpx.codes.NOT_FOUND:
                raise
            return False
        return True
