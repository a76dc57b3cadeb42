"""The spine."""

import sqlalchemy as sa
from alembic import op

from exclave.storage.engine.types import Instant, Json

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Expand the schema."""
    op.create_table(
        "audit",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("at", Instant(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("detail", Json, nullable=False),
        sa.PrimaryKeyConstraint("org_id", "id"),
    )
    op.create_table(
        "cluster",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "idempotency",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("reply", Json, nullable=True),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("org_id", "account_id", "key"),
    )
    op.create_table(
        "orgs",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "signing_keys",
        sa.Column("kid", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("public_key", sa.Text(), nullable=False),
        sa.Column("sealed", sa.Text(), nullable=False),
        sa.Column("signed_by", sa.Text(), nullable=True),
        sa.Column("signature", sa.Text(), nullable=True),
        sa.Column("created_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("kid"),
        sa.UniqueConstraint("position"),
    )
    op.create_table(
        "accounts",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.ForeignKeyConstraint(
            ["org_id"],
            ["orgs.id"],
        ),
        sa.PrimaryKeyConstraint("org_id", "id"),
        sa.UniqueConstraint("org_id", "name"),
    )
    op.create_table(
        "queues",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("counter", sa.Integer(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["org_id"],
            ["orgs.id"],
        ),
        sa.PrimaryKeyConstraint("org_id", "id"),
    )
    op.create_table(
        "api_tokens",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("account_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("prefix", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("grants", Json, nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("expires_at", Instant(), nullable=False),
        sa.Column("revoked_at", Instant(), nullable=True),
        sa.Column("last_used_at", Instant(), nullable=True),
        sa.ForeignKeyConstraint(
            ["org_id", "account_id"],
            ["accounts.org_id", "accounts.id"],
        ),
        sa.PrimaryKeyConstraint("org_id", "id"),
        sa.UniqueConstraint("hash"),
    )
    op.create_table(
        "enrolments",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("queue_id", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("expires_at", Instant(), nullable=False),
        sa.Column("used_at", Instant(), nullable=True),
        sa.Column("runner_id", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["org_id", "queue_id"],
            ["queues.org_id", "queues.id"],
        ),
        sa.PrimaryKeyConstraint("org_id", "id"),
        sa.UniqueConstraint("hash"),
    )
    op.create_table(
        "installs",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("labels", Json, nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.ForeignKeyConstraint(
            ["org_id", "id"],
            ["queues.org_id", "queues.id"],
        ),
        sa.PrimaryKeyConstraint("org_id", "id"),
        sa.UniqueConstraint("org_id", "name"),
    )
    op.create_table(
        "jobs",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("queue_id", sa.Text(), nullable=False),
        sa.Column("workflow_id", sa.Text(), nullable=True),
        sa.Column("step", sa.Integer(), nullable=True),
        sa.Column("step_name", sa.Text(), nullable=True),
        sa.Column("step_attempt", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("mutating", sa.Boolean(), nullable=False),
        sa.Column("lanes", Json, nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("spec", Json, nullable=False),
        sa.Column("inputs", Json, nullable=False),
        sa.Column("approved_digest", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("cancel_requested_at", Instant(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("outputs", Json, nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("finished_at", Instant(), nullable=True),
        sa.ForeignKeyConstraint(
            ["org_id", "queue_id"],
            ["queues.org_id", "queues.id"],
        ),
        sa.PrimaryKeyConstraint("org_id", "id"),
    )
    op.create_index("jobs_of_workflow", "jobs", ["org_id", "workflow_id"], unique=False)
    op.create_index(
        "jobs_queued",
        "jobs",
        ["queue_id", "priority", "id"],
        unique=False,
        sqlite_where=sa.text("state = 'queued'"),
        postgresql_where=sa.text("state = 'queued'"),
    )
    op.create_table(
        "lanes",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("queue_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("execution_id", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("changed_at", Instant(), nullable=False),
        sa.ForeignKeyConstraint(
            ["org_id", "queue_id"],
            ["queues.org_id", "queues.id"],
        ),
        sa.PrimaryKeyConstraint("org_id", "queue_id", "name"),
    )
    op.create_table(
        "runners",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("queue_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("state_reason", sa.Text(), nullable=False),
        sa.Column("public_key", sa.Text(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("generation_used", sa.Boolean(), nullable=False),
        sa.Column("boot", sa.BigInteger(), nullable=False),
        sa.Column("poll_no", sa.BigInteger(), nullable=False),
        sa.Column("renew_no", sa.BigInteger(), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("protocol", sa.Text(), nullable=False),
        sa.Column("capabilities", Json, nullable=False),
        sa.Column("stats", Json, nullable=False),
        sa.Column("seen_at", Instant(), nullable=True),
        sa.Column("due_at", Instant(), nullable=True),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.ForeignKeyConstraint(
            ["org_id", "queue_id"],
            ["queues.org_id", "queues.id"],
        ),
        sa.PrimaryKeyConstraint("org_id", "id"),
        sa.UniqueConstraint("id"),
    )
    op.create_table(
        "workflows",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("queue_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("approve_all", sa.Boolean(), nullable=False),
        sa.Column("plan_only", sa.Boolean(), nullable=False),
        sa.Column("cancel_requested", sa.Boolean(), nullable=False),
        sa.Column("laned", sa.Boolean(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("labels", Json, nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("moved_at", Instant(), nullable=False),
        sa.Column("finished_at", Instant(), nullable=True),
        sa.ForeignKeyConstraint(
            ["org_id", "queue_id"],
            ["queues.org_id", "queues.id"],
        ),
        sa.PrimaryKeyConstraint("org_id", "id"),
    )
    op.create_index(
        "workflows_running",
        "workflows",
        ["moved_at"],
        unique=False,
        sqlite_where=sa.text("state = 'running'"),
        postgresql_where=sa.text("state = 'running'"),
    )
    op.create_table(
        "executions",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("queue_id", sa.Text(), nullable=False),
        sa.Column("runner_id", sa.Text(), nullable=False),
        sa.Column("mutating", sa.Boolean(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("poll_nonce", sa.Text(), nullable=False),
        sa.Column("envelope", sa.Text(), nullable=False),
        sa.Column("boot", sa.BigInteger(), nullable=False),
        sa.Column("start_no", sa.BigInteger(), nullable=False),
        sa.Column("offered_at", Instant(), nullable=False),
        sa.Column("started_at", Instant(), nullable=True),
        sa.Column("renewed_at", Instant(), nullable=True),
        sa.Column("ended_at", Instant(), nullable=True),
        sa.Column("cancel_sent", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("result_digest", sa.Text(), nullable=True),
        sa.Column("late_result", Json, nullable=True),
        sa.Column("log_bytes", sa.BigInteger(), nullable=False),
        sa.Column("log_end", sa.BigInteger(), nullable=True),
        sa.Column("log_sha256", sa.Text(), nullable=False),
        sa.Column("log_merged", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["org_id", "job_id"],
            ["jobs.org_id", "jobs.id"],
        ),
        sa.ForeignKeyConstraint(
            ["org_id", "runner_id"],
            ["runners.org_id", "runners.id"],
        ),
        sa.PrimaryKeyConstraint("org_id", "id"),
    )
    op.create_index("executions_of_job", "executions", ["org_id", "job_id"], unique=False)
    op.create_index(
        "executions_open",
        "executions",
        ["runner_id"],
        unique=False,
        sqlite_where=sa.text("state != 'ended'"),
        postgresql_where=sa.text("state != 'ended'"),
    )
    op.create_index(
        "executions_unmerged",
        "executions",
        ["ended_at"],
        unique=False,
        sqlite_where=sa.text("state = 'ended' AND NOT log_merged"),
        postgresql_where=sa.text("state = 'ended' AND NOT log_merged"),
    )
    op.create_table(
        "runner_nonces",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("nonce", sa.Text(), nullable=False),
        sa.Column("runner_id", sa.Text(), nullable=False),
        sa.Column("expires_at", Instant(), nullable=False),
        sa.ForeignKeyConstraint(
            ["org_id", "runner_id"],
            ["runners.org_id", "runners.id"],
        ),
        sa.PrimaryKeyConstraint("nonce"),
    )
    op.create_table(
        "runner_tokens",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("runner_id", sa.Text(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("expires_at", Instant(), nullable=False),
        sa.ForeignKeyConstraint(
            ["org_id", "runner_id"],
            ["runners.org_id", "runners.id"],
        ),
        sa.PrimaryKeyConstraint("hash"),
    )
    op.create_table(
        "steps",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("workflow_id", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("needs", sa.Text(), nullable=False),
        sa.Column("lanes", sa.Text(), nullable=False),
        sa.Column("mutating", sa.Boolean(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("spec", Json, nullable=False),
        sa.Column("outputs", Json, nullable=False),
        sa.Column("job_id", sa.Text(), nullable=True),
        sa.Column("answered_by", sa.Text(), nullable=True),
        sa.Column("started_at", Instant(), nullable=True),
        sa.Column("finished_at", Instant(), nullable=True),
        sa.Column("due_at", Instant(), nullable=True),
        sa.ForeignKeyConstraint(
            ["org_id", "workflow_id"],
            ["workflows.org_id", "workflows.id"],
        ),
        sa.PrimaryKeyConstraint("org_id", "workflow_id", "position"),
    )
    op.create_index(
        "steps_due",
        "steps",
        ["due_at"],
        unique=False,
        sqlite_where=sa.text("state = 'active' AND due_at IS NOT NULL"),
        postgresql_where=sa.text("state = 'active' AND due_at IS NOT NULL"),
    )
    op.create_table(
        "tickets",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("queue_id", sa.Text(), nullable=False),
        sa.Column("lane", sa.Text(), nullable=False),
        sa.Column("workflow_id", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["org_id", "workflow_id"],
            ["workflows.org_id", "workflows.id"],
        ),
        sa.PrimaryKeyConstraint("org_id", "queue_id", "lane", "workflow_id"),
    )
    op.create_table(
        "execution_lanes",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("execution_id", sa.Text(), nullable=False),
        sa.Column("queue_id", sa.Text(), nullable=False),
        sa.Column("lane", sa.Text(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["org_id", "execution_id"],
            ["executions.org_id", "executions.id"],
        ),
        sa.PrimaryKeyConstraint("org_id", "execution_id", "lane"),
    )
    op.create_table(
        "log_segments",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("execution_id", sa.Text(), nullable=False),
        sa.Column("start", sa.BigInteger(), nullable=False),
        sa.Column("end", sa.BigInteger(), nullable=False),
        sa.Column("blob", sa.Text(), nullable=False),
        sa.Column("at", Instant(), nullable=False),
        sa.ForeignKeyConstraint(
            ["org_id", "execution_id"],
            ["executions.org_id", "executions.id"],
        ),
        sa.PrimaryKeyConstraint("org_id", "execution_id", "start"),
    )
