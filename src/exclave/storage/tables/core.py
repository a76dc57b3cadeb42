"""The core tables. Each has an `org_id`, except the few that belong to the whole instance."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from exclave.domain.accounts import read_grants
from exclave.domain.identity import QueueKind
from exclave.domain.jobs import ExecutionState, JobKind, JobState
from exclave.domain.lanes import LaneState
from exclave.domain.runners import RunnerState
from exclave.domain.workflows import StepKind, StepState, WorkflowState
from exclave.storage.engine.types import EnumText, Instant, IntegerList, Json, JsonAs, NameList

metadata = MetaData()

INSTANCE_TABLES = frozenset({"cluster", "signing_keys", "orgs"})
"""Tables without a tenant; `orgs` is the tenants themselves."""


def org_column() -> Column[str]:
    """Make the column of the tenant."""
    return Column("org_id", Text, nullable=False)


def of_org(column: str, table: str) -> ForeignKeyConstraint:
    """Point at another thing of the same tenant: a row can never refer across tenants."""
    return ForeignKeyConstraint(["org_id", column], [f"{table}.org_id", f"{table}.id"])


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

queues = Table(
    "queues",
    metadata,
    org_column(),
    Column("id", Text, nullable=False),
    Column("kind", EnumText(QueueKind), nullable=False),
    Column("counter", Integer, nullable=False, default=0),
    Column("seq", BigInteger, nullable=False, default=0),
    PrimaryKeyConstraint("org_id", "id"),
    ForeignKeyConstraint(["org_id"], ["orgs.id"]),
)

installs = Table(
    "installs",
    metadata,
    org_column(),
    Column("id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("labels", Json, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("deleted_at", Instant),
    PrimaryKeyConstraint("org_id", "id"),
    UniqueConstraint("org_id", "name"),
    of_org("id", "queues"),
)

lanes = Table(
    "lanes",
    metadata,
    org_column(),
    Column("queue_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("state", EnumText(LaneState), nullable=False),
    Column("execution_id", Text),
    Column("reason", Text, nullable=False, default=""),
    Column("changed_at", Instant, nullable=False),
    PrimaryKeyConstraint("org_id", "queue_id", "name"),
    of_org("queue_id", "queues"),
)

tickets = Table(
    "tickets",
    metadata,
    org_column(),
    Column("queue_id", Text, nullable=False),
    Column("lane", Text, nullable=False),
    Column("workflow_id", Text, nullable=False),
    Column("seq", BigInteger, nullable=False),
    PrimaryKeyConstraint("org_id", "queue_id", "lane", "workflow_id"),
    of_org("workflow_id", "workflows"),
)

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

workflows = Table(
    "workflows",
    metadata,
    org_column(),
    Column("id", Text, nullable=False),
    Column("queue_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("kind", Text, nullable=False, server_default=""),
    Column("state", EnumText(WorkflowState), nullable=False),
    Column("approve_all", Boolean, nullable=False),
    Column("plan_only", Boolean, nullable=False),
    Column("cancel_requested", Boolean, nullable=False),
    Column("laned", Boolean, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("labels", Json, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("moved_at", Instant, nullable=False),
    Column("finished_at", Instant),
    Column("sealed", Json),
    Column("by_person", Text),
    Column("by_token", Text),
    PrimaryKeyConstraint("org_id", "id"),
    of_org("queue_id", "queues"),
    Index("workflows_of_queue", "org_id", "queue_id", "id"),
    Index(
        "workflows_running",
        "moved_at",
        sqlite_where=text("state = 'running'"),
        postgresql_where=text("state = 'running'"),
    ),
)

steps = Table(
    "steps",
    metadata,
    org_column(),
    Column("workflow_id", Text, nullable=False),
    Column("position", Integer, nullable=False),
    Column("name", Text, nullable=False),
    Column("kind", EnumText(StepKind), nullable=False),
    Column("state", EnumText(StepState), nullable=False),
    Column("needs", IntegerList, nullable=False),
    Column("lanes", NameList, nullable=False),
    Column("mutating", Boolean, nullable=False),
    Column("attempt", Integer, nullable=False, default=0),
    Column("digest", Text, nullable=False, default=""),
    Column("reason", Text, nullable=False, default=""),
    Column("message", Text, nullable=False, default=""),
    Column("spec", Json, nullable=False),
    Column("outputs", Json, nullable=False),
    Column("job_id", Text),
    Column("answered_by", Text),
    Column("started_at", Instant),
    Column("finished_at", Instant),
    Column("due_at", Instant),
    PrimaryKeyConstraint("org_id", "workflow_id", "position"),
    of_org("workflow_id", "workflows"),
    Index(
        "steps_due",
        "due_at",
        sqlite_where=text("state = 'active' AND due_at IS NOT NULL"),
        postgresql_where=text("state = 'active' AND due_at IS NOT NULL"),
    ),
)

jobs = Table(
    "jobs",
    metadata,
    org_column(),
    Column("id", Text, nullable=False),
    Column("queue_id", Text, nullable=False),
    Column("workflow_id", Text),
    Column("step", Integer),
    Column("step_name", Text),
    Column("step_attempt", Integer, nullable=False, default=0),
    Column("kind", EnumText(JobKind), nullable=False),
    Column("mutating", Boolean, nullable=False),
    Column("lanes", Json, nullable=False),
    Column("priority", Integer, nullable=False),
    Column("spec", Json, nullable=False),
    Column("inputs", Json, nullable=False),
    Column("approved_digest", Text),
    Column("state", EnumText(JobState), nullable=False),
    Column("attempts", Integer, nullable=False, default=0),
    Column("cancel_requested_at", Instant),
    Column("reason", Text),
    Column("message", Text, nullable=False, default=""),
    Column("exit_code", Integer),
    Column("outputs", Json, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("finished_at", Instant),
    PrimaryKeyConstraint("org_id", "id"),
    of_org("queue_id", "queues"),
    Index(
        "jobs_queued",
        "queue_id",
        "priority",
        "id",
        sqlite_where=text("state = 'queued'"),
        postgresql_where=text("state = 'queued'"),
    ),
    Index("jobs_of_workflow", "org_id", "workflow_id"),
)

executions = Table(
    "executions",
    metadata,
    org_column(),
    Column("id", Text, nullable=False),
    Column("job_id", Text, nullable=False),
    Column("queue_id", Text, nullable=False),
    Column("runner_id", Text, nullable=False),
    Column("mutating", Boolean, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("state", EnumText(ExecutionState), nullable=False),
    Column("poll_nonce", Text, nullable=False),
    Column("envelope", Text, nullable=False),
    Column("boot", BigInteger, nullable=False, default=0),
    Column("start_no", BigInteger, nullable=False, default=0),
    Column("offered_at", Instant, nullable=False),
    Column("started_at", Instant),
    Column("renewed_at", Instant),
    Column("ended_at", Instant),
    Column("cancel_sent", Boolean, nullable=False, default=False),
    Column("reason", Text),
    Column("result_digest", Text),
    Column("late_result", Json),
    Column("log_bytes", BigInteger, nullable=False, default=0),
    Column("log_end", BigInteger),
    Column("log_sha256", Text, nullable=False, default=""),
    Column("log_merged", Boolean, nullable=False, default=False),
    Column("log_pieces", Integer, nullable=False, server_default=text("0")),
    Column("merged_to", BigInteger, nullable=False, server_default=text("0")),
    Column("merge_tries", Integer, nullable=False, server_default=text("0")),
    Column("merge_after", Instant),
    PrimaryKeyConstraint("org_id", "id"),
    of_org("job_id", "jobs"),
    of_org("runner_id", "runners"),
    Index("executions_of_job", "org_id", "job_id"),
    Index(
        "executions_open",
        "runner_id",
        sqlite_where=text("state != 'ended'"),
        postgresql_where=text("state != 'ended'"),
    ),
    Index(
        "executions_unmerged",
        "ended_at",
        sqlite_where=text("state = 'ended' AND NOT log_merged"),
        postgresql_where=text("state = 'ended' AND NOT log_merged"),
    ),
    Index(
        "executions_to_merge",
        "org_id",
        "ended_at",
        sqlite_where=text("state = 'ended' AND NOT log_merged"),
        postgresql_where=text("state = 'ended' AND NOT log_merged"),
    ),
)

execution_lanes = Table(
    "execution_lanes",
    metadata,
    org_column(),
    Column("execution_id", Text, nullable=False),
    Column("queue_id", Text, nullable=False),
    Column("lane", Text, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    PrimaryKeyConstraint("org_id", "execution_id", "lane"),
    of_org("execution_id", "executions"),
)

log_segments = Table(
    "log_segments",
    metadata,
    org_column(),
    Column("execution_id", Text, nullable=False),
    Column("start", BigInteger, nullable=False),
    Column("end", BigInteger, nullable=False),
    Column("blob", Text, nullable=False),
    Column("stored", BigInteger),
    Column("at", Instant, nullable=False),
    PrimaryKeyConstraint("org_id", "execution_id", "start"),
    of_org("execution_id", "executions"),
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
