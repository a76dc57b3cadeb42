"""Queries for the registry's garbage collection: what is there, what pins it, what goes."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import ColumnElement, delete, exists, or_, select, union, update

from exclave.domain.builds import BuildState
from exclave.domain.identity import OrgId
from exclave.domain.manifests import ManifestNode
from exclave.domain.uploads import UploadPart
from exclave.storage.engine.database import Tx
from exclave.storage.tables.apps import builds, config_builds
from exclave.storage.tables.identity import orgs
from exclave.storage.tables.installs import install_parts
from exclave.storage.tables.registry import (
    oci_blobs,
    oci_links,
    oci_manifests,
    oci_tags,
    oci_uploads,
)


class Link(NamedTuple):
    """A blob of a repository, and since when it has it."""

    digest: str
    linked_at: datetime


class BlobUse(NamedTuple):
    """A blob and a repository that has it; None if none has it."""

    digest: str
    size: int
    blob: str
    repository: str | None


class StaleUpload(NamedTuple):
    """An upload that nobody has touched for long."""

    reserved: int
    """The bytes that were set aside for it."""
    parts: tuple[UploadPart, ...]


def find_due(tx: Tx, before: datetime) -> OrgId | None:
    """Find the org whose last collection was the longest ago, if that was before."""
    oldest = select(orgs.c.id).where(_is_due(before))
    never_first = (orgs.c.collected_at.is_not(None), orgs.c.collected_at, orgs.c.id)
    row = tx.first(oldest.order_by(*never_first).limit(1))
    return None if row is None else OrgId(row.id)


def claim_collection(tx: Tx, org: OrgId, before: datetime) -> bool:
    """Store that an org's collection begins; return whether it was still due."""
    claim = update(orgs).where(orgs.c.id == org, _is_due(before)).values(collected_at=tx.now)
    return tx.run(claim).rowcount == 1


def set_collected(tx: Tx, org: OrgId, at: datetime) -> None:
    """Set when an org had its last collection."""
    tx.run(update(orgs).where(orgs.c.id == org).values(collected_at=at))


def _is_due(before: datetime) -> ColumnElement[bool]:
    return or_(orgs.c.collected_at.is_(None), orgs.c.collected_at < before)


def list_pins(tx: Tx, org: OrgId, repository: str) -> list[str]:
    """List the digests of builds that a config version pins or an install has."""
    pinned = exists().where(
        config_builds.c.org_id == builds.c.org_id, config_builds.c.build_id == builds.c.id
    )
    installed = exists().where(
        install_parts.c.org_id == builds.c.org_id, install_parts.c.build_id == builds.c.id
    )
    mine = (builds.c.org_id == org, builds.c.repository == repository)
    rows = tx.all(select(builds.c.digest, builds.c.provenance).where(*mine, or_(pinned, installed)))
    return [digest for row in rows for digest in row if digest]


def list_young_builds(tx: Tx, org: OrgId, repository: str, since: datetime) -> list[str]:
    """List the digests of builds that ended lately: a config version may pin them next."""
    mine = (builds.c.org_id == org, builds.c.repository == repository)
    rows = tx.all(
        select(builds.c.digest, builds.c.provenance).where(*mine, builds.c.finished_at > since)
    )
    return [digest for row in rows for digest in row if digest]


def list_graph(tx: Tx, org: OrgId, repository: str) -> Sequence[ManifestNode]:
    """List the manifests of a repository with what they name."""
    mine = (oci_manifests.c.org_id == org, oci_manifests.c.repository == repository)
    columns = (
        oci_manifests.c.digest,
        oci_manifests.c.subject,
        oci_manifests.c.refers,
        oci_manifests.c.created_at,
    )
    return tx.all(select(*columns).where(*mine), ManifestNode)


def list_tagged(tx: Tx, org: OrgId, repository: str, since: datetime | None = None) -> list[str]:
    """List the digests that tags mean; with `since`, only tags that were set after it."""
    mine = [oci_tags.c.org_id == org, oci_tags.c.repository == repository]
    if since is not None:
        mine.append(oci_tags.c.changed_at >= since)
    return [row.digest for row in tx.all(select(oci_tags.c.digest).where(*mine))]


def drop_tags(tx: Tx, org: OrgId, repository: str, before: datetime) -> None:
    """Remove tags that were set before a time."""
    mine = (oci_tags.c.org_id == org, oci_tags.c.repository == repository)
    tx.run(delete(oci_tags).where(*mine, oci_tags.c.changed_at < before))


def list_links(tx: Tx, org: OrgId, repository: str) -> Sequence[Link]:
    """List the blobs of a repository and since when it has them."""
    mine = (oci_links.c.org_id == org, oci_links.c.repository == repository)
    return tx.all(select(oci_links.c.digest, oci_links.c.linked_at).where(*mine), Link)


def list_names(tx: Tx, org: OrgId) -> list[str]:
    """List the names of all repositories."""
    names = union(
        select(oci_links.c.repository).where(oci_links.c.org_id == org),
        select(oci_manifests.c.repository).where(oci_manifests.c.org_id == org),
    )
    return sorted(row.repository for row in tx.all(names))


def drop_manifests(tx: Tx, org: OrgId, repository: str, digests: Iterable[str]) -> list[int]:
    """Remove manifests; builds that made them cannot be taken up again. Return their sizes."""
    sizes = []
    for digest in digests:
        mine = (oci_manifests.c.org_id == org, oci_manifests.c.repository == repository)
        gone = delete(oci_manifests).where(*mine, oci_manifests.c.digest == digest)
        sizes += [row.size for row in tx.all(gone.returning(oci_manifests.c.size))]
        made = (builds.c.org_id == org, builds.c.repository == repository)
        # Without its key, nothing takes the build up again.
        collected = {"state": BuildState.COLLECTED, "key": ""}
        tx.run(update(builds).where(*made, builds.c.digest == digest).values(**collected))
    return sizes


def drop_links(tx: Tx, org: OrgId, repository: str, digests: Iterable[str]) -> None:
    """Unlink blobs from a repository."""
    for digest in digests:
        mine = (oci_links.c.org_id == org, oci_links.c.repository == repository)
        tx.run(delete(oci_links).where(*mine, oci_links.c.digest == digest))


def list_blobs(tx: Tx, org: OrgId, before: datetime) -> Sequence[BlobUse]:
    """List old blobs, each with the repositories that have it, one row for each."""
    linked = (oci_links.c.org_id == oci_blobs.c.org_id) & (oci_links.c.digest == oci_blobs.c.digest)
    return tx.all(
        select(oci_blobs.c.digest, oci_blobs.c.size, oci_blobs.c.blob, oci_links.c.repository)
        .join(oci_links, linked, isouter=True)
        .where(oci_blobs.c.org_id == org, oci_blobs.c.created_at < before),
        BlobUse,
    )


def drop_blobs(tx: Tx, org: OrgId, digests: Iterable[str]) -> list[int]:
    """Delete the rows of blobs; return their sizes."""
    sizes = []
    for digest in digests:
        gone = delete(oci_blobs).where(oci_blobs.c.org_id == org, oci_blobs.c.digest == digest)
        sizes += [row.size for row in tx.all(gone.returning(oci_blobs.c.size))]
    return sizes


def list_uploads(tx: Tx, org: OrgId, before: datetime) -> Sequence[StaleUpload]:
    """List uploads that nobody has touched since."""
    old = (oci_uploads.c.org_id == org, oci_uploads.c.changed_at < before)
    return tx.all(select(oci_uploads.c.reserved, oci_uploads.c.parts).where(*old), StaleUpload)


def drop_uploads(tx: Tx, org: OrgId, before: datetime) -> Sequence[StaleUpload]:
    """End uploads that nobody has touched since; return those that this ended."""
    old = (oci_uploads.c.org_id == org, oci_uploads.c.changed_at < before)
    gone = delete(oci_uploads).where(*old)
    return tx.all(gone.returning(oci_uploads.c.reserved, oci_uploads.c.parts), StaleUpload)


def list_used_keys(tx: Tx, org: OrgId) -> set[str]:
    """List the keys in the blob store that the registry of an org knows."""
    rows = tx.all(select(oci_blobs.c.blob).where(oci_blobs.c.org_id == org))
    open_ones = tx.all(select(oci_uploads.c.parts).where(oci_uploads.c.org_id == org))
    return {row.blob for row in rows} | {part.key for row in open_ones for part in row.parts}
