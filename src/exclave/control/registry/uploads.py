"""Uploads to the registry. Pieces are kept in the blob store, so that any server can continue."""

from collections.abc import AsyncIterable, AsyncIterator
from typing import Protocol

from exclave.base.digests import start_hash, write_digest
from exclave.base.errors import NotFound
from exclave.control.deps import Deps
from exclave.control.limits import quotas
from exclave.control.limits.reserved_space import UploadSpace
from exclave.domain.identity import OrgId
from exclave.domain.quotas import Stored
from exclave.domain.registry import (
    ContentTooLarge,
    DigestInvalid,
    Place,
    RegistryScope,
    SizeInvalid,
    UploadInvalid,
    UploadUnknown,
    WrongPlace,
    check_digest,
    find_place,
)
from exclave.domain.uploads import Upload, UploadPart
from exclave.storage import registry_blobs, usage
from exclave.storage.engine.database import Tx
from exclave.storage.usage import Account, Amount

MAX_BLOB = 64 << 30
MAX_PARTS = 10_000
FOLDER = "registry"
"""Where the registry's bytes are in the blob store: `registry/<org>/<id>`."""


class Incoming(Protocol):
    """A request body that is being received."""

    @property
    def cut(self) -> bool:
        """Whether the client hung up before the end."""
        ...

    @property
    def announced(self) -> int | None:
        """How many bytes it has, if the client said so."""
        ...

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the body in chunks."""
        ...


async def begin_upload(deps: Deps, scope: RegistryScope, name: str) -> Upload:
    """Begin an upload."""
    place = find_place(scope, name, push=True)
    upload = Upload(deps.ids.new("upl"), 0)

    def begin(tx: Tx) -> None:
        quotas.reserve(tx, deps, place.org, Stored.UPLOADS, 0, 1)
        registry_blobs.add_upload(tx, place.org, place.repository, upload.id)

    await deps.db.write(begin, key=place.org)
    return upload


async def show_upload(deps: Deps, scope: RegistryScope, name: str, upload: str) -> Upload:
    """Return an upload and how much of it has arrived."""
    return await _find(deps, find_place(scope, name, push=True), upload)


async def cancel_upload(deps: Deps, scope: RegistryScope, name: str, upload: str) -> None:
    """Cancel an upload and delete its pieces."""
    place = find_place(scope, name, push=True)
    while not await _forget(deps, place, await _find(deps, place, upload)):
        pass  # it has grown since it was looked up


async def append(
    deps: Deps,
    scope: RegistryScope,
    name: str,
    upload: str,
    body: Incoming,
    *,
    start: int | None = None,
    size: int | None = None,
) -> Upload:
    """Append a piece. What arrived of a body that was cut off is kept, to continue from there.

    `start` and `size` are what the client announced about the piece, if it did.
    """
    place = find_place(scope, name, push=True)
    held = await _find(deps, place, upload)
    if start is not None and start != held.size:
        raise _out_of_order(held)
    if len(held.parts) >= MAX_PARTS:
        raise UploadInvalid("the upload has too many pieces", hint="Send larger pieces.")
    space = UploadSpace(deps, place, upload)
    try:
        most = _find_longest(deps)
        if body.announced is not None:
            if held.size + body.announced > most:
                raise _too_large(most)
            await space.need(body.announced)
        part = await _store(deps, place, _set_aside(body, space), most - held.size)
        if size is not None and part.size != size and not body.cut:
            await deps.blobs.delete(part.key)
            raise SizeInvalid(f"{part.size} bytes came where {size} were announced")
        return await _grow(deps, place, held, part, space)
    finally:
        await space.release_rest()


async def finish(
    deps: Deps,
    scope: RegistryScope,
    name: str,
    upload: str,
    digest: str,
    body: Incoming,
    *,
    start: int | None = None,
    size: int | None = None,
) -> None:
    """Append the last piece, and turn the upload into a blob if its digest is right.

    Finishing an upload again succeeds, as the first reply may have been lost.
    """
    place = find_place(scope, name, push=True)
    check_digest(digest)
    try:
        held = await append(deps, scope, name, upload, body, start=start, size=size)
    except UploadUnknown:
        if await deps.db.read(lambda tx: _has(tx, place, digest)):
            return
        raise
    if body.cut:
        raise UploadInvalid("the body was cut; ask for the state of the upload and go on")
    joined = await _join(deps, place, held, digest)
    if joined.digest != digest:
        if joined.key not in {part.key for part in held.parts}:
            await deps.blobs.delete(joined.key)
        await _forget(deps, place, held)
        raise DigestInvalid("the content is not what the digest names")
    await _settle(deps, place, held, joined)


async def _find(deps: Deps, place: Place, upload: str) -> Upload:
    held = await deps.db.read(
        lambda tx: registry_blobs.find_upload(tx, place.org, place.repository, upload)
    )
    if held is None:
        raise UploadUnknown("there is no such upload")
    return held


async def _store(
    deps: Deps, place: Place, chunks: AsyncIterable[bytes], room: int, like: str = "sha256:"
) -> UploadPart:
    """Store a piece under a new key; return it with its size, and a digest like the given one."""
    key = f"{FOLDER}/{place.org}/{deps.ids.new('reg')}"
    hashed = start_hash(like)
    size = 0

    async def measure() -> AsyncIterator[bytes]:
        nonlocal size
        async for chunk in chunks:
            hashed.update(chunk)
            size += len(chunk)
            if size > room:
                raise _too_large(_find_longest(deps))
            yield chunk

    await deps.blobs.put_stream(key, measure())
    return UploadPart(key, size, write_digest(like, hashed))


async def _set_aside(body: Incoming, space: UploadSpace) -> AsyncIterator[bytes]:
    size = 0
    async for chunk in body:
        size += len(chunk)
        await space.need(size)
        yield chunk


def _find_longest(deps: Deps) -> int:
    return min(MAX_BLOB, deps.quotas.upload_bytes or MAX_BLOB)


def _too_large(most: int) -> ContentTooLarge:
    return ContentTooLarge(f"a blob has {most} bytes at most")


async def _grow(
    deps: Deps, place: Place, held: Upload, part: UploadPart, space: UploadSpace
) -> Upload:
    """Store the row of a piece, unless another came first or the upload has ended meanwhile."""
    if part.size == 0:
        await deps.blobs.delete(part.key)
        return held
    grown = Upload(held.id, held.size + part.size, (*held.parts, part))

    def grow(tx: Tx) -> bool:
        return registry_blobs.grow_upload(tx, place.org, place.repository, grown, at=held.size)

    if await deps.db.write(grow, key=place.org):
        space.keep(part.size)
        return grown
    await deps.blobs.delete(part.key)
    raise _out_of_order(await _find(deps, place, held.id))


async def _join(deps: Deps, place: Place, held: Upload, digest: str) -> UploadPart:
    """Join all pieces into one with a digest of the same algorithm as the given one.

    A single piece is used as it is. It was hashed with SHA-256 when it arrived, because the
    client names the digest last; for another algorithm it is read once more.
    """
    if len(held.parts) == 1:
        return await _hash_again(deps, held.parts[0], digest)

    async def read() -> AsyncIterator[bytes]:
        for part in held.parts:
            async for chunk in deps.blobs.read(part.key):
                yield chunk

    try:
        return await _store(deps, place, read(), MAX_BLOB, digest)
    except NotFound as error:
        raise UploadUnknown("the upload has ended meanwhile") from error


async def _hash_again(deps: Deps, part: UploadPart, digest: str) -> UploadPart:
    if digest.startswith("sha256:"):
        return part
    hashed = start_hash(digest)
    try:
        async for chunk in deps.blobs.read(part.key):
            hashed.update(chunk)
    except NotFound as error:
        raise UploadUnknown("the upload has ended meanwhile") from error
    return UploadPart(part.key, part.size, write_digest(digest, hashed))


async def _settle(deps: Deps, place: Place, held: Upload, joined: UploadPart) -> None:
    def settle(tx: Tx) -> str | None:
        registry_blobs.hold_off_collector(tx, place.org)
        mine = (tx, place.org, place.repository)
        reserved = registry_blobs.drop_upload(*mine, held.id, at=held.size)
        if reserved is None:
            return None
        kept = registry_blobs.add_blob(tx, place.org, joined.digest, joined.size, joined.key)
        registry_blobs.link_blob(*mine, joined.digest)
        _count_settled(tx, place.org, reserved, joined.size if kept == joined.key else 0)
        return kept

    kept = await deps.db.write(settle, key=place.org)
    if kept is None:
        # Another server finished it first; the pieces belong to its blob.
        if joined.key not in {part.key for part in held.parts}:
            await deps.blobs.delete(joined.key)
        if not await deps.db.read(lambda tx: _has(tx, place, joined.digest)):
            raise UploadUnknown("the upload has ended meanwhile")
        return
    for key in {part.key for part in (*held.parts, joined)} - {kept}:
        await deps.blobs.delete(key)


async def _forget(deps: Deps, place: Place, held: Upload) -> bool:
    """Delete an upload that has not grown meanwhile; return whether it was deleted."""

    def forget(tx: Tx) -> bool:
        mine = (tx, place.org, place.repository, held.id)
        reserved = registry_blobs.drop_upload(*mine, at=held.size)
        if reserved is not None:
            quotas.release(tx, place.org, Stored.REGISTRY, reserved)
            quotas.release(tx, place.org, Stored.UPLOADS, 0, 1)
        return reserved is not None

    if not await deps.db.write(forget, key=place.org):
        return False
    for part in held.parts:
        await deps.blobs.delete(part.key)
    return True


def _count_settled(tx: Tx, org: OrgId, reserved: int, stored: int) -> None:
    """Count the bytes of a finished upload as those of its blob; an existing blob adds none."""
    quotas.release(tx, org, Stored.UPLOADS, 0, 1)
    quotas.release(tx, org, Stored.REGISTRY, max(0, reserved - stored))
    if stored:
        usage.add_usage(tx, Account(org, Stored.REGISTRY), Amount(max(0, stored - reserved), 1))


def _has(tx: Tx, place: Place, digest: str) -> bool:
    return registry_blobs.find_blob(tx, place.org, place.repository, digest) is not None


def _out_of_order(held: Upload) -> WrongPlace:
    return WrongPlace(f"the upload ends at byte {held.size}", size=held.size, upload=held.id)
