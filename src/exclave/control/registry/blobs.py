"""Blobs of the registry: read, mount, delete."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta

from exclave.control.deps import Deps
from exclave.control.registry.pins import check_unpinned
from exclave.domain.registry import (
    BlobUnknown,
    NameUnknown,
    Place,
    RegistryScope,
    check_digest,
    find_place,
)
from exclave.storage import registry, registry_blobs
from exclave.storage.engine.database import Tx
from exclave.storage.registry_blobs import LinkedBlob

_FRESHENED = timedelta(hours=1)
"""A pusher that finds an older blob makes it young again: its manifest is on the way."""


@dataclass(frozen=True, slots=True)
class Blob:
    """A stored blob."""

    digest: str
    size: int
    key: str


async def find_blob(deps: Deps, scope: RegistryScope, name: str, digest: str) -> Blob:
    """Return a blob of a repository; `BlobUnknown` if it has none with this digest."""
    place = find_place(scope, name)
    check_digest(digest)

    def find(tx: Tx) -> LinkedBlob:
        blob = registry_blobs.find_blob(tx, place.org, place.repository, digest)
        if blob is None:
            raise _missing(tx, place)
        return blob

    row = await deps.db.read(find)
    if scope.push and row.linked_at < deps.clock.now() - _FRESHENED:
        await _freshen(deps, place, digest)
    return Blob(digest, row.size, row.blob)


def read_blob(deps: Deps, blob: Blob, start: int, size: int) -> AsyncIterator[bytes]:
    """Yield a part of a blob, piece by piece."""
    return deps.blobs.read(blob.key, start, size)


async def mount_blob(deps: Deps, scope: RegistryScope, name: str, digest: str, source: str) -> bool:
    """Link a blob of another repository of the org into this one; return whether it was found."""
    place = find_place(scope, name, push=True)
    check_digest(digest)
    try:
        origin = find_place(scope, source)
    except NameUnknown:
        return False

    def mount(tx: Tx) -> bool:
        registry_blobs.hold_off_collector(tx, place.org)
        if registry_blobs.find_blob(tx, origin.org, origin.repository, digest) is None:
            return False
        registry_blobs.link_blob(tx, place.org, place.repository, digest)
        return True

    return await deps.db.write(mount, key=place.org)


async def delete_blob(deps: Deps, scope: RegistryScope, name: str, digest: str) -> None:
    """Unlink a blob from a repository; its bytes are deleted when no repository has it any more."""
    place = find_place(scope, name, delete=True)
    check_digest(digest)

    def remove(tx: Tx) -> None:
        registry_blobs.hold_off_pushes(tx, place.org)
        check_unpinned(tx, place, digest)
        if not registry_blobs.unlink_blob(tx, place.org, place.repository, digest):
            raise _missing(tx, place)

    await deps.db.write(remove, key=place.org)


async def _freshen(deps: Deps, place: Place, digest: str) -> None:
    def freshen(tx: Tx) -> None:
        registry_blobs.hold_off_collector(tx, place.org)
        if registry_blobs.find_blob(tx, place.org, place.repository, digest) is None:
            raise _missing(tx, place)
        registry_blobs.link_blob(tx, place.org, place.repository, digest)

    await deps.db.write(freshen, key=place.org)


def _missing(tx: Tx, place: Place) -> BlobUnknown | NameUnknown:
    if registry.has_repository(tx, place.org, place.repository):
        return BlobUnknown("the repository has no such blob")
    return NameUnknown("there is no such repository")
