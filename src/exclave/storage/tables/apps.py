"""Tables of apps: their immutable config versions and the builds of their parts."""

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from exclave.domain.builds import BuildState
from exclave.storage.engine.types import EnumText, Instant, Json
from exclave.storage.tables.schema import metadata, of_org, org_column

apps = Table(
    "apps",
    metadata,
    org_column(),
    Column("id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("config_id", Text),
    Column("created_at", Instant, nullable=False),
    Column("created_by", Text, nullable=False),
    PrimaryKeyConstraint("org_id", "id"),
    UniqueConstraint("org_id", "name"),
)

configs = Table(
    "configs",
    metadata,
    org_column(),
    Column("id", Text, nullable=False),
    Column("app_id", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("digest", Text, nullable=False),
    Column("archive", Text, nullable=False),
    Column("archive_digest", Text, nullable=False),
    Column("outline", Json, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("by_person", Text),
    Column("by_token", Text),
    PrimaryKeyConstraint("org_id", "id"),
    UniqueConstraint("org_id", "app_id", "version"),
    of_org("app_id", "apps"),
)

config_parts = Table(
    "config_parts",
    metadata,
    org_column(),
    Column("config_id", Text, nullable=False),
    Column("section", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("position", Integer, nullable=False),
    Column("hash", Text, nullable=False),
    Column("value", Json, nullable=False),
    PrimaryKeyConstraint("org_id", "config_id", "section", "name"),
    of_org("config_id", "configs"),
)

builds = Table(
    "builds",
    metadata,
    org_column(),
    Column("id", Text, nullable=False),
    Column("app_id", Text, nullable=False),
    Column("part", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("state", EnumText(BuildState), nullable=False),
    Column("source", Json, nullable=False),
    Column("workflow_id", Text),
    Column("job_id", Text),
    Column("repository", Text, nullable=False),
    Column("digest", Text, nullable=False, default=""),
    Column("commit", Text, nullable=False, default=""),
    Column("size", BigInteger, nullable=False, default=0),
    Column("provenance", Text, nullable=False, default=""),
    Column("error", Text, nullable=False, default=""),
    Column("created_at", Instant, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("finished_at", Instant),
    PrimaryKeyConstraint("org_id", "id"),
    of_org("app_id", "apps"),
    Index("builds_by_key", "org_id", "app_id", "key"),
    Index(
        "builds_open",
        "org_id",
        "app_id",
        sqlite_where=text("state = 'running'"),
        postgresql_where=text("state = 'running'"),
    ),
)

config_builds = Table(
    "config_builds",
    metadata,
    org_column(),
    Column("config_id", Text, nullable=False),
    Column("part", Text, nullable=False),
    Column("build_id", Text, nullable=False),
    PrimaryKeyConstraint("org_id", "config_id", "part"),
    of_org("config_id", "configs"),
    of_org("build_id", "builds"),
    Index("config_builds_by_build", "org_id", "build_id"),
)
