"""Queries for the registry's repositories, manifests and tags."""

from collections.abc import Iterable, Sequence

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    ScalarSelect,
    Table,
    cast,
    delete,
    exists,
    func,
    select,
    union,
    update,
)
from sqlalchemy.sql import tuple_

from exclave.domain.identity import OrgId
from exclave.domain.manifests import ReadManifest, Referrer, StoredManifest
from exclave.domain.registry import Repository, Tag
from exclave.storage.engine.database import Tx
from exclave.storage.tables.registry import oci_blobs, oci_links, oci_manifests, oci_tags

_AT_ONCE = 500


def find_manifest(tx: Tx, org: OrgId, repository: str, digest: str) -> StoredManifest | None:
    """Find a manifest by its digest."""
    columns = (
        oci_manifests.c.digest,
        oci_manifests.c.media_type,
        oci_manifests.c.content,
        oci_manifests.c.subject,
    )
    return tx.first(select(*columns).where(*_manifest(org, repository, digest)), StoredManifest)


def find_tag(tx: Tx, org: OrgId, repository: str, tag: str) -> str | None:
    """Return the digest of a tag."""
    row = tx.first(select(oci_tags.c.digest).where(*_tag(org, repository, tag)))
    return None if row is None else str(row.digest)


def find_manifest_sizes(
    tx: Tx, org: OrgId, repository: str, digests: Iterable[str]
) -> dict[str, int]:
    """Return the sizes of these manifests, as far as the repository has them."""
    sizes: dict[str, int] = {}
    wanted = list(digests)
    mine = (oci_manifests.c.org_id == org, oci_manifests.c.repository == repository)
    for start in range(0, len(wanted), _AT_ONCE):
        some = oci_manifests.c.digest.in_(wanted[start : start + _AT_ONCE])
        rows = tx.all(select(oci_manifests.c.digest, oci_manifests.c.size).where(*mine, some))
        sizes |= {row.digest: row.size for row in rows}
    return sizes


def put_manifest(
    tx: Tx, org: OrgId, repository: str, digest: str, manifest: ReadManifest, content: bytes
) -> bool:
    """Store a manifest, and return whether it is new; an old one is as young as a new one again."""
    row = {
        "org_id": org,
        "repository": repository,
        "digest": digest,
        "created_at": tx.now,
        "media_type": manifest.media_type,
        "artifact_type": manifest.artifact_type,
        "size": len(content),
        "subject": manifest.subject,
        "refers": manifest.refers,
        "annotations": dict(manifest.annotations),
        "content": content,
    }
    fresh = tx.insert_missing(oci_manifests).values(**row).returning(oci_manifests.c.digest)
    is_new = tx.first(fresh) is not None
    mine = _manifest(org, repository, digest)
    tx.run(
        update(oci_manifests).where(*mine).values(created_at=tx.now, media_type=manifest.media_type)
    )
    return is_new


def put_tag(tx: Tx, org: OrgId, repository: str, tag: str, digest: str) -> None:
    """Point a tag at a digest."""
    row = {"org_id": org, "repository": repository, "tag": tag, "digest": digest}
    tx.run(tx.insert_missing(oci_tags).values(**row, changed_at=tx.now))
    change = update(oci_tags).where(*_tag(org, repository, tag))
    tx.run(change.values(digest=digest, changed_at=tx.now))


def drop_tag(tx: Tx, org: OrgId, repository: str, tag: str) -> bool:
    """Delete a tag; return whether there was one."""
    return tx.run(delete(oci_tags).where(*_tag(org, repository, tag))).rowcount == 1


def drop_manifest(tx: Tx, org: OrgId, repository: str, digest: str) -> int | None:
    """Delete a manifest and its tags; return its size if there was one."""
    mine = (oci_tags.c.org_id == org, oci_tags.c.repository == repository)
    tx.run(delete(oci_tags).where(*mine, oci_tags.c.digest == digest))
    gone = delete(oci_manifests).where(*_manifest(org, repository, digest))
    row = tx.first(gone.returning(oci_manifests.c.size))
    return None if row is None else int(row.size)


def list_tags(tx: Tx, org: OrgId, repository: str, after: str, limit: int) -> Sequence[Tag]:
    """List tags without regard to case, from after a tag."""
    order = (func.lower(oci_tags.c.tag), oci_tags.c.tag)
    mine = [oci_tags.c.org_id == org, oci_tags.c.repository == repository]
    if after:
        mine.append(tuple_(*order) > tuple_(after.lower(), after))
    return tx.all(
        select(oci_tags.c.tag, oci_tags.c.digest, oci_tags.c.changed_at)
        .where(*mine)
        .order_by(*order)
        .limit(limit),
        Tag,
    )


def list_referrers(
    tx: Tx, org: OrgId, repository: str, subject: str, kind: str, after: str, limit: int
) -> Sequence[Referrer]:
    """List the manifests that refer to one, of one artifact type if it is given."""
    where = [
        oci_manifests.c.org_id == org,
        oci_manifests.c.repository == repository,
        oci_manifests.c.subject == subject,
        oci_manifests.c.digest > after,
    ]
    if kind:
        where.append(oci_manifests.c.artifact_type == kind)
    columns = (
        oci_manifests.c.digest,
        oci_manifests.c.media_type,
        oci_manifests.c.artifact_type,
        oci_manifests.c.size,
        oci_manifests.c.annotations,
    )
    query = select(*columns).where(*where).order_by(oci_manifests.c.digest).limit(limit)
    return tx.all(query, Referrer)


def has_repository(tx: Tx, org: OrgId, repository: str) -> bool:
    """Return whether a repository holds anything."""
    links = exists().where(oci_links.c.org_id == org, oci_links.c.repository == repository)
    documents = exists().where(
        oci_manifests.c.org_id == org, oci_manifests.c.repository == repository
    )
    row = tx.first(select(links | documents))
    return bool(row and row[0])


def list_repositories(tx: Tx, org: OrgId, after: str, limit: int) -> Sequence[Repository]:
    """List repositories by name, with how much is in each."""
    names = union(
        select(oci_links.c.repository).where(oci_links.c.org_id == org),
        select(oci_manifests.c.repository).where(oci_manifests.c.org_id == org),
    ).subquery()
    name = names.c.repository
    return tx.all(
        select(
            name,
            _count(oci_manifests, org, name).label("manifests"),
            _count(oci_tags, org, name).label("tags"),
            _sum_blobs(org, name).label("size"),
        )
        .where(name > after)
        .order_by(name)
        .limit(limit),
        Repository,
    )


def _count(table: Table, org: OrgId, name: ColumnElement[str]) -> ScalarSelect[int]:
    counted = select(func.count()).select_from(table)
    return counted.where(table.c.org_id == org, table.c.repository == name).scalar_subquery()


def _sum_blobs(org: OrgId, name: ColumnElement[str]) -> ScalarSelect[int]:
    return (
        select(cast(func.coalesce(func.sum(oci_blobs.c.size), 0), BigInteger))
        .join(
            oci_links,
            (oci_links.c.org_id == oci_blobs.c.org_id) & (oci_links.c.digest == oci_blobs.c.digest),
        )
        .where(oci_links.c.org_id == org, oci_links.c.repository == name)
        .scalar_subquery()
    )


def _manifest(org: OrgId, repository: str, digest: str) -> tuple[ColumnElement[bool], ...]:
    return (
        oci_manifests.c.org_id == org,
        oci_manifests.c.repository == repository,
        oci_manifests.c.digest == digest,
    )


def _tag(org: OrgId, repository: str, tag: str) -> tuple[ColumnElement[bool], ...]:
    return (
        oci_tags.c.org_id == org,
        oci_tags.c.repository == repository,
        oci_tags.c.tag == tag,
    )
