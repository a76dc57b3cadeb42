"""Tables of Stacks: the codes by which a customer fetches one or looks at it."""

from sqlalchemy import Column, Index, PrimaryKeyConstraint, Table, Text

from exclave.storage.engine.types import Instant
from exclave.storage.tables.schema import metadata, of_org, org_column

stack_codes = Table(
    "stack_codes",
    metadata,
    org_column(),
    Column("id", Text, nullable=False),
    Column("install_id", Text, nullable=False),
    Column("hash", Text, nullable=False, unique=True),
    Column("enrolment_id", Text, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("expires_at", Instant, nullable=False),
    Column("parent_id", Text),
    PrimaryKeyConstraint("org_id", "id"),
    of_org("install_id", "installs"),
    of_org("enrolment_id", "enrolments"),
)

stack_views = Table(
    "stack_views",
    metadata,
    org_column(),
    Column("id", Text, nullable=False),
    Column("install_id", Text, nullable=False),
    Column("hash", Text, nullable=False, unique=True),
    Column("created_by", Text, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("expires_at", Instant, nullable=False),
    Column("revoked_at", Instant),
    PrimaryKeyConstraint("org_id", "id"),
    of_org("install_id", "installs"),
    Index("stack_views_of_install", "org_id", "install_id", "id"),
)
