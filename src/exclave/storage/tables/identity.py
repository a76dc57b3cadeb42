"""Tables of the instance, its tenants and their accounts."""

from sqlalchemy import (
    Boolean,
    Column,
    ForeignKeyConstraint,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)

from exclave.domain.accounts import read_grants
from exclave.storage.engine.types import Instant, Json, JsonAs
from exclave.storage.tables.schema import metadata, of_org, org_column

cluster = Table(
    "cluster",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("created_at", Instant, nullable=False),
)

signing_keys = Table(
    "signing_keys",
    metadata,
    Column("kid", Text, primary_key=True),
    Column("position", Integer, nullable=False, unique=True),
    Column("public_key", Text, nullable=False),
    Column("sealed", Text, nullable=False),
    Column("signed_by", Text),
    Column("signature", Text),
    Column("created_at", Instant, nullable=False),
)

orgs = Table(
    "orgs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("created_at", Instant, nullable=False),
    Column("four_eyes", Boolean),
    Column("four_eyes_off_by", Text),
    Column("four_eyes_off_at", Instant),
    Column("collected_at", Instant),
)

accounts = Table(
    "accounts",
    metadata,
    org_column(),
    Column("id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("created_at", Instant, nullable=False),
    PrimaryKeyConstraint("org_id", "id"),
    UniqueConstraint("org_id", "name"),
    ForeignKeyConstraint(["org_id"], ["orgs.id"]),
)

api_tokens = Table(
    "api_tokens",
    metadata,
    org_column(),
    Column("id", Text, nullable=False),
    Column("account_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("prefix", Text, nullable=False),
    Column("hash", Text, nullable=False, unique=True),
    Column("grants", JsonAs(read_grants), nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("expires_at", Instant, nullable=False),
    Column("revoked_at", Instant),
    Column("last_used_at", Instant),
    Column("parent_id", Text),
    Column("person_id", Text),
    Column("instance_admin", Boolean),
    PrimaryKeyConstraint("org_id", "id"),
    of_org("account_id", "accounts"),
)

idempotency = Table(
    "idempotency",
    metadata,
    org_column(),
    Column("key", Text, nullable=False),
    Column("account_id", Text, nullable=False),
    Column("request", Text, nullable=False),
    Column("reply", Json),
    Column("status", Integer),
    Column("at", Instant, nullable=False),
    PrimaryKeyConstraint("org_id", "account_id", "key"),
)

audit = Table(
    "audit",
    metadata,
    org_column(),
    Column("id", Text, nullable=False),
    Column("at", Instant, nullable=False),
    Column("actor", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("detail", Json, nullable=False),
    PrimaryKeyConstraint("org_id", "id"),
)
