"""Tables of Terraform: state versions, locks, and the files that executions hand in."""

from sqlalchemy import BigInteger, Column, Index, Integer, PrimaryKeyConstraint, Table, Text

from exclave.storage.engine.types import Instant, Json
from exclave.storage.tables.schema import metadata, of_org, org_column

tf_states = Table(
    "tf_states",
    metadata,
    org_column(),
    Column("queue_id", Text, nullable=False),
    Column("workspace", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("serial", BigInteger, nullable=False),
    Column("lineage", Text, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("blob", Text, nullable=False),
    Column("resources", Json, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("execution_id", Text, nullable=False),
    Column("at", Instant, nullable=False),
    Column("restored_from", Integer),
    PrimaryKeyConstraint("org_id", "queue_id", "workspace", "version"),
    of_org("queue_id", "queues"),
    of_org("execution_id", "executions"),
)

tf_locks = Table(
    "tf_locks",
    metadata,
    org_column(),
    Column("queue_id", Text, nullable=False),
    Column("workspace", Text, nullable=False),
    Column("lock_id", Text, nullable=False),
    Column("info", Json, nullable=False),
    Column("execution_id", Text, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("at", Instant, nullable=False),
    PrimaryKeyConstraint("org_id", "queue_id", "workspace"),
    of_org("queue_id", "queues"),
    of_org("execution_id", "executions"),
)

attachments = Table(
    "attachments",
    metadata,
    org_column(),
    Column("execution_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("queue_id", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("blob", Text, nullable=False),
    Column("at", Instant, nullable=False),
    PrimaryKeyConstraint("org_id", "execution_id", "name"),
    of_org("execution_id", "executions"),
    Index("attachments_of_queue", "org_id", "queue_id", "name"),
)
