"""Tables of runners: how they enrol, and what they prove themselves with."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
)

from exclave.domain.identity import QueueKind
from exclave.domain.runners import RunnerState
from exclave.storage.engine.types import EnumText, Instant, Json
from exclave.storage.tables.schema import metadata, of_org, org_column

enrolments = Table(
    "enrolments",
    metadata,
    org_column(),
    Column("id", Text, nullable=False),
    Column("queue_id", Text, nullable=False),
    Column("hash", Text, nullable=False, unique=True),
    Column("created_at", Instant, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("expires_at", Instant, nullable=False),
    Column("used_at", Instant),
    Column("runner_id", Text),
    Column("parent_id", Text),
    PrimaryKeyConstraint("org_id", "id"),
    of_org("queue_id", "queues"),
)

runners = Table(
    "runners",
    metadata,
    org_column(),
    Column("id", Text, nullable=False, unique=True),
    Column("queue_id", Text, nullable=False),
    Column("kind", EnumText(QueueKind), nullable=False),
    Column("name", Text, nullable=False),
    Column("state", EnumText(RunnerState), nullable=False),
    Column("state_reason", Text, nullable=False, default=""),
    Column("public_key", Text, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("generation_used", Boolean, nullable=False),
    Column("boot", BigInteger, nullable=False, default=0),
    Column("poll_no", BigInteger, nullable=False, default=0),
    Column("renew_no", BigInteger, nullable=False, default=0),
    Column("poll_nonce", Text),
    Column("poll_free", Integer),
    Column("version", Text, nullable=False),
    Column("protocol", Text, nullable=False),
    Column("capabilities", Json, nullable=False),
    Column("stats", Json, nullable=False),
    Column("seen_at", Instant),
    Column("due_at", Instant),
    Column("cause", Text, nullable=False, default=""),
    Column("created_at", Instant, nullable=False),
    Column("alarm", Text),
    Column("alarm_at", Instant),
    PrimaryKeyConstraint("org_id", "id"),
    of_org("queue_id", "queues"),
    Index("runners_of_queue", "org_id", "queue_id"),
)

runner_nonces = Table(
    "runner_nonces",
    metadata,
    org_column(),
    Column("nonce", Text, primary_key=True),
    Column("runner_id", Text, nullable=False),
    Column("generation", Integer),
    Column("expires_at", Instant, nullable=False),
    of_org("runner_id", "runners"),
    Index("runner_nonces_of_runner", "org_id", "runner_id"),
)

runner_tokens = Table(
    "runner_tokens",
    metadata,
    org_column(),
    Column("hash", Text, primary_key=True),
    Column("runner_id", Text, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("expires_at", Instant, nullable=False),
    of_org("runner_id", "runners"),
)
