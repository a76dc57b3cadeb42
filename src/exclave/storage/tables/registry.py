"""Tables of the embedded OCI registry; blobs lie in the blob store, one copy per org."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Index,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
)

from exclave.domain.uploads import read_parts
from exclave.storage.engine.types import Instant, Json, JsonAs
from exclave.storage.tables.schema import metadata, org_column

Plain = Text().with_variant(Text(collation="C"), "postgresql")
"""Text that both databases sort by its bytes."""

oci_blobs = Table(
    "oci_blobs",
    metadata,
    org_column(),
    Column("digest", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("blob", Text, nullable=False),
    Column("created_at", Instant, nullable=False),
    PrimaryKeyConstraint("org_id", "digest"),
)

oci_links = Table(
    "oci_links",
    metadata,
    org_column(),
    Column("repository", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("linked_at", Instant, nullable=False),
    PrimaryKeyConstraint("org_id", "repository", "digest"),
)

oci_manifests = Table(
    "oci_manifests",
    metadata,
    org_column(),
    Column("repository", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("media_type", Text, nullable=False),
    Column("artifact_type", Text, nullable=False, default=""),
    Column("size", BigInteger, nullable=False),
    Column("subject", Text),
    Column("annotations", Json, nullable=False),
    Column("refers", Json, nullable=False),
    Column("content", LargeBinary, nullable=False),
    Column("created_at", Instant, nullable=False),
    PrimaryKeyConstraint("org_id", "repository", "digest"),
    Index("oci_manifests_by_subject", "org_id", "repository", "subject"),
)

oci_tags = Table(
    "oci_tags",
    metadata,
    org_column(),
    Column("repository", Text, nullable=False),
    Column("tag", Plain, nullable=False),
    Column("digest", Text, nullable=False),
    Column("changed_at", Instant, nullable=False),
    PrimaryKeyConstraint("org_id", "repository", "tag"),
)

oci_uploads = Table(
    "oci_uploads",
    metadata,
    org_column(),
    Column("id", Text, nullable=False),
    Column("repository", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("parts", JsonAs(read_parts), nullable=False),
    Column("reserved", BigInteger, nullable=False, server_default="0"),
    Column("started_at", Instant, nullable=False),
    Column("changed_at", Instant, nullable=False),
    PrimaryKeyConstraint("org_id", "id"),
)

registry_tokens = Table(
    "registry_tokens",
    metadata,
    org_column(),
    Column("hash", Text, nullable=False, unique=True),
    Column("repository", Text, nullable=False),
    Column("push", Boolean, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("expires_at", Instant, nullable=False),
    Column("parent_id", Text),
    PrimaryKeyConstraint("org_id", "hash"),
)
