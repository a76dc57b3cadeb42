"""Queries for the registry's blobs, their links to repositories, and open uploads."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import ColumnElement, delete, insert, select, update

from exclave.domain.identity import OrgId
from exclave.domain.uploads import Upload, write_parts
from exclave.storage.engine.database import Tx
from exclave.storage.tables.identity import orgs
from exclave.storage.tables.registry import oci_blobs, oci_links, oci_uploads

_AT_ONCE = 500


class LinkedBlob(NamedTuple):
    """A blob that a repository has."""

    size: int
    blob: str
    """Its key in the blob store."""
    linked_at: datetime


def hold_off_collector(tx: Tx, org: OrgId) -> None:
    """Keep garbage collection out of this org until the transaction ends; pushes share it."""
    tx.first(select(orgs.c.id).where(orgs.c.id == org).with_for_update(read=True))


def hold_off_pushes(tx: Tx, org: OrgId) -> None:
    """Keep pushes and pins out of this org until the transaction ends."""
    tx.first(select(orgs.c.id).where(orgs.c.id == org).with_for_update())


def find_blob(tx: Tx, org: OrgId, repository: str, digest: str) -> LinkedBlob | None:
    """Find a blob that a repository has."""
    return tx.first(
        select(oci_blobs.c.size, oci_blobs.c.blob, oci_links.c.linked_at)
        .join(
            oci_links,
            (oci_links.c.org_id == oci_blobs.c.org_id) & (oci_links.c.digest == oci_blobs.c.digest),
        )
        .where(oci_links.c.org_id == org, oci_links.c.repository == repository)
        .where(oci_links.c.digest == digest),
        LinkedBlob,
    )


def find_sizes(tx: Tx, org: OrgId, repository: str, digests: Iterable[str]) -> dict[str, int]:
    """Return the sizes of these blobs, as far as the repository has them."""
    sizes: dict[str, int] = {}
    wanted = list(digests)
    for start in range(0, len(wanted), _AT_ONCE):
        rows = tx.all(
            select(oci_blobs.c.digest, oci_blobs.c.size)
            .join(
                oci_links,
                (oci_links.c.org_id == oci_blobs.c.org_id)
                & (oci_links.c.digest == oci_blobs.c.digest),
            )
            .where(oci_links.c.org_id == org, oci_links.c.repository == repository)
            .where(oci_links.c.digest.in_(wanted[start : start + _AT_ONCE]))
        )
        sizes |= {row.digest: row.size for row in rows}
    return sizes


def add_blob(tx: Tx, org: OrgId, digest: str, size: int, key: str) -> str:
    """Store the key of a blob; return the stored key if there was one before."""
    row = {"org_id": org, "digest": digest, "size": size, "blob": key, "created_at": tx.now}
    tx.run(tx.insert_missing(oci_blobs).values(**row))
    mine = (oci_blobs.c.org_id == org, oci_blobs.c.digest == digest)
    kept = tx.first(select(oci_blobs.c.blob).where(*mine))
    return key if kept is None else str(kept.blob)


def link_blob(tx: Tx, org: OrgId, repository: str, digest: str) -> None:
    """Link a blob to a repository; its age there begins anew."""
    row = {"org_id": org, "repository": repository, "digest": digest, "linked_at": tx.now}
    tx.run(tx.insert_missing(oci_links).values(**row))
    tx.run(update(oci_links).where(*_link(org, repository, digest)).values(linked_at=tx.now))


def unlink_blob(tx: Tx, org: OrgId, repository: str, digest: str) -> bool:
    """Unlink a blob from a repository; return whether it was linked."""
    return tx.run(delete(oci_links).where(*_link(org, repository, digest))).rowcount == 1


def add_upload(tx: Tx, org: OrgId, repository: str, upload: str) -> None:
    """Begin an upload."""
    row = {"org_id": org, "id": upload, "repository": repository, "size": 0, "parts": []}
    tx.run(insert(oci_uploads).values(**row, started_at=tx.now, changed_at=tx.now))


def find_upload(tx: Tx, org: OrgId, repository: str, upload: str) -> Upload | None:
    """Find an open upload of a repository."""
    columns = (oci_uploads.c.id, oci_uploads.c.size, oci_uploads.c.parts)
    return tx.first(select(*columns).where(*_upload(org, repository, upload)), Upload)


def grow_upload(tx: Tx, org: OrgId, repository: str, grown: Upload, *, at: int) -> bool:
    """Store the pieces of an upload that still ends at `at`; return whether it did."""
    change = (
        update(oci_uploads)
        .where(*_upload(org, repository, grown.id), oci_uploads.c.size == at)
        .values(size=grown.size, parts=write_parts(grown.parts), changed_at=tx.now)
    )
    return tx.run(change).rowcount == 1


def reserve_upload(tx: Tx, org: OrgId, repository: str, upload: str, size: int) -> bool:
    """Change how many bytes are set aside for an upload; false if it has ended."""
    change = update(oci_uploads).where(*_upload(org, repository, upload))
    return tx.run(change.values(reserved=oci_uploads.c.reserved + size)).rowcount == 1


def drop_upload(tx: Tx, org: OrgId, repository: str, upload: str, *, at: int) -> int | None:
    """End an upload, if it still ends at `at`; return the bytes that were set aside for it."""
    where = (*_upload(org, repository, upload), oci_uploads.c.size == at)
    gone = tx.first(delete(oci_uploads).where(*where).returning(oci_uploads.c.reserved))
    return None if gone is None else int(gone.reserved)


def _link(org: OrgId, repository: str, digest: str) -> tuple[ColumnElement[bool], ...]:
    return (
        oci_links.c.org_id == org,
        oci_links.c.repository == repository,
        oci_links.c.digest == digest,
    )


def _upload(org: OrgId, repository: str, upload: str) -> tuple[ColumnElement[bool], ...]:
    return (
        oci_uploads.c.org_id == org,
        oci_uploads.c.id == upload,
        oci_uploads.c.repository == repository,
    )
