"""Manifests and tags of the registry: push, pull, list, delete."""

from collections.abc import Mapping, Sequence

from exclave.base.digests import digest_bytes, digest_like
from exclave.control.deps import Deps
from exclave.control.limits import quotas
from exclave.control.registry.pins import check_unpinned
from exclave.domain import quotas as kinds
from exclave.domain.manifests import Content, ReadManifest, Referrer, StoredManifest, read_manifest
from exclave.domain.registry import (
    DigestInvalid,
    ManifestBlobUnknown,
    ManifestInvalid,
    ManifestUnknown,
    NameUnknown,
    Place,
    RegistryScope,
    check_digest,
    find_place,
    is_tag,
)
from exclave.storage import registry, registry_blobs
from exclave.storage.engine.database import Tx

MOST_TAGS = 1000
MOST_REFERRERS = 200


async def push_manifest(
    deps: Deps, scope: RegistryScope, name: str, reference: str, media_type: str, content: bytes
) -> StoredManifest:
    """Store a manifest whose parts all exist, and set the tag if the reference is one."""
    place = find_place(scope, name, push=True)
    tag = reference if ":" not in reference else None
    digest = digest_bytes(content) if tag else digest_like(check_digest(reference), content)
    if tag is None and reference != digest:
        raise DigestInvalid("the content is not what the digest names")
    if tag is not None and not is_tag(tag):
        raise ManifestInvalid("this cannot be a tag")
    manifest = read_manifest(content, media_type)

    def push(tx: Tx) -> None:
        registry_blobs.hold_off_collector(tx, place.org)
        _check_parts(tx, place, manifest)
        if registry.put_manifest(tx, place.org, place.repository, digest, manifest, content):
            quotas.reserve(tx, deps, place.org, kinds.Stored.REGISTRY, len(content), 1)
        if tag is not None:
            registry.put_tag(tx, place.org, place.repository, tag, digest)

    await deps.db.write(push, key=place.org)
    return StoredManifest(digest, media_type, content, manifest.subject)


async def pull_manifest(
    deps: Deps, scope: RegistryScope, name: str, reference: str
) -> StoredManifest:
    """Return a manifest by digest or tag."""
    place = find_place(scope, name)

    def pull(tx: Tx) -> StoredManifest:
        manifest = _find(tx, place, reference)
        if manifest is None:
            raise _missing(tx, place)
        return manifest

    return await deps.db.read(pull)


async def delete_manifest(deps: Deps, scope: RegistryScope, name: str, reference: str) -> None:
    """Delete a tag, or a manifest with all its tags."""
    place = find_place(scope, name, delete=True)

    def remove(tx: Tx) -> None:
        mine = (tx, place.org, place.repository)
        if is_tag(reference):
            if not registry.drop_tag(*mine, reference):
                raise _missing(tx, place)
            return
        registry_blobs.hold_off_pushes(tx, place.org)
        check_unpinned(tx, place, check_digest(reference))
        size = registry.drop_manifest(*mine, reference)
        if size is None:
            raise _missing(tx, place)
        quotas.release(tx, place.org, kinds.Stored.REGISTRY, size, 1)

    await deps.db.write(remove, key=place.org)


async def list_tags(
    deps: Deps, scope: RegistryScope, name: str, last: str, limit: int
) -> tuple[list[str], bool]:
    """Return the tags after one, and whether there are more."""
    place = find_place(scope, name)
    wanted = min(limit, MOST_TAGS)

    def find(tx: Tx) -> list[str]:
        if not registry.has_repository(tx, place.org, place.repository):
            raise NameUnknown("there is no such repository")
        rows = registry.list_tags(tx, place.org, place.repository, last, wanted + 1)
        return [row.tag for row in rows]

    tags = await deps.db.read(find)
    return tags[:wanted], len(tags) > wanted > 0


async def list_referrers(
    deps: Deps, scope: RegistryScope, name: str, digest: str, *, kind: str, last: str
) -> tuple[Sequence[Referrer], bool]:
    """Return the manifests that refer to one, and whether there are more."""
    place = find_place(scope, name)
    check_digest(digest)
    rows = await deps.db.read(
        lambda tx: registry.list_referrers(
            tx, place.org, place.repository, digest, kind, last, MOST_REFERRERS + 1
        )
    )
    return rows[:MOST_REFERRERS], len(rows) > MOST_REFERRERS


def _check_parts(tx: Tx, place: Place, manifest: ReadManifest) -> None:
    """Refuse a manifest that names content which the repository lacks or has in another size."""
    mine = (tx, place.org, place.repository)
    blobs = registry_blobs.find_sizes(*mine, {content.digest for content in manifest.blobs})
    _check_sizes(manifest.blobs, blobs)
    children = {content.digest for content in manifest.children}
    _check_sizes(manifest.children, registry.find_manifest_sizes(*mine, children))


def _check_sizes(named: Sequence[Content], sizes: Mapping[str, int]) -> None:
    for content in named:
        if content.digest not in sizes:
            raise ManifestBlobUnknown(
                f"the repository does not have {content.digest}", digest=content.digest
            )
        if sizes[content.digest] != content.size:
            raise ManifestInvalid(
                f"{content.digest} has {sizes[content.digest]} bytes and not {content.size}"
            )


def _find(tx: Tx, place: Place, reference: str) -> StoredManifest | None:
    digest: str | None = reference
    if ":" in reference:
        check_digest(reference)
    elif is_tag(reference):
        digest = registry.find_tag(tx, place.org, place.repository, reference)
    else:
        return None
    if digest is None:
        return None
    return registry.find_manifest(tx, place.org, place.repository, digest)


def _missing(tx: Tx, place: Place) -> ManifestUnknown | NameUnknown:
    if registry.has_repository(tx, place.org, place.repository):
        return ManifestUnknown("the repository has no such manifest")
    return NameUnknown("there is no such repository")
