"""Apps, builds, the registry, installs of apps, Terraform state."""

import sqlalchemy as sa
from alembic import op

from exclave.storage.engine.types import Instant, Json

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Expand the schema."""
    op.create_table(
        "apps",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("config_id", sa.Text(), nullable=True),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("org_id", "id"),
        sa.UniqueConstraint("org_id", "name"),
    )
    op.create_table(
        "oci_blobs",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("blob", sa.Text(), nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("org_id", "digest"),
    )
    op.create_table(
        "oci_links",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("repository", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("linked_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("org_id", "repository", "digest"),
    )
    op.create_table(
        "oci_manifests",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("repository", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("media_type", sa.Text(), nullable=False),
        sa.Column("artifact_type", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=True),
        sa.Column("annotations", Json, nullable=False),
        sa.Column("refers", Json, nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("org_id", "repository", "digest"),
    )
    op.create_index(
        "oci_manifests_by_subject",
        "oci_manifests",
        ["org_id", "repository", "subject"],
        unique=False,
    )
    op.create_table(
        "oci_tags",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("repository", sa.Text(), nullable=False),
        sa.Column(
            "tag", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False
        ),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("changed_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("org_id", "repository", "tag"),
    )
    op.create_table(
        "oci_uploads",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("repository", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("parts", Json, nullable=False),
        sa.Column("started_at", Instant(), nullable=False),
        sa.Column("changed_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("org_id", "id"),
    )
    op.create_table(
        "registry_tokens",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("repository", sa.Text(), nullable=False),
        sa.Column("push", sa.Boolean(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("expires_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("org_id", "hash"),
        sa.UniqueConstraint("hash"),
    )
    op.create_table(
        "builds",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("app_id", sa.Text(), nullable=False),
        sa.Column("part", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("source", Json, nullable=False),
        sa.Column("workflow_id", sa.Text(), nullable=True),
        sa.Column("job_id", sa.Text(), nullable=True),
        sa.Column("repository", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("commit", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("provenance", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("finished_at", Instant(), nullable=True),
        sa.ForeignKeyConstraint(
            ["org_id", "app_id"],
            ["apps.org_id", "apps.id"],
        ),
        sa.PrimaryKeyConstraint("org_id", "id"),
    )
    op.create_index("builds_by_key", "builds", ["org_id", "app_id", "key"], unique=False)
    op.create_index(
        "builds_open",
        "builds",
        ["org_id", "app_id"],
        unique=False,
        sqlite_where=sa.text("state = 'running'"),
        postgresql_where=sa.text("state = 'running'"),
    )
    op.create_table(
        "configs",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("app_id", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("archive", sa.Text(), nullable=False),
        sa.Column("archive_digest", sa.Text(), nullable=False),
        sa.Column("outline", Json, nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["org_id", "app_id"],
            ["apps.org_id", "apps.id"],
        ),
        sa.PrimaryKeyConstraint("org_id", "id"),
        sa.UniqueConstraint("org_id", "app_id", "version"),
    )
    op.create_table(
        "config_builds",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("config_id", sa.Text(), nullable=False),
        sa.Column("part", sa.Text(), nullable=False),
        sa.Column("build_id", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["org_id", "build_id"],
            ["builds.org_id", "builds.id"],
        ),
        sa.ForeignKeyConstraint(
            ["org_id", "config_id"],
            ["configs.org_id", "configs.id"],
        ),
        sa.PrimaryKeyConstraint("org_id", "config_id", "part"),
    )
    op.create_index("config_builds_by_build", "config_builds", ["org_id", "build_id"], unique=False)
    op.create_table(
        "config_parts",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("config_id", sa.Text(), nullable=False),
        sa.Column("section", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("value", Json, nullable=False),
        sa.ForeignKeyConstraint(
            ["org_id", "config_id"],
            ["configs.org_id", "configs.id"],
        ),
        sa.PrimaryKeyConstraint("org_id", "config_id", "section", "name"),
    )
    op.create_table(
        "action_runs",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("install_id", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("trigger", sa.Text(), nullable=False),
        sa.Column("workflow_id", sa.Text(), nullable=False),
        sa.Column("step", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("outputs", Json, nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("started_at", Instant(), nullable=False),
        sa.Column("finished_at", Instant(), nullable=True),
        sa.ForeignKeyConstraint(
            ["org_id", "install_id"],
            ["installs.org_id", "installs.id"],
        ),
        sa.ForeignKeyConstraint(
            ["org_id", "workflow_id"],
            ["workflows.org_id", "workflows.id"],
        ),
        sa.PrimaryKeyConstraint("org_id", "id"),
    )
    op.create_index(
        "action_runs_of_install", "action_runs", ["org_id", "install_id", "id"], unique=False
    )
    op.create_table(
        "app_installs",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("install_id", sa.Text(), nullable=False),
        sa.Column("app_id", sa.Text(), nullable=False),
        sa.Column("config_id", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("approve_all", sa.Boolean(), nullable=False),
        sa.Column("here", sa.Boolean(), nullable=False),
        sa.Column("managed_by", sa.Text(), nullable=False),
        sa.Column("state_version", sa.Integer(), nullable=False),
        sa.Column("input_version", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["org_id", "app_id"],
            ["apps.org_id", "apps.id"],
        ),
        sa.ForeignKeyConstraint(
            ["org_id", "config_id"],
            ["configs.org_id", "configs.id"],
        ),
        sa.ForeignKeyConstraint(
            ["org_id", "install_id"],
            ["installs.org_id", "installs.id"],
        ),
        sa.PrimaryKeyConstraint("org_id", "install_id"),
    )
    op.create_index(
        "app_installs_in_state", "app_installs", ["org_id", "state", "install_id"], unique=False
    )
    op.create_index(
        "app_installs_of_app", "app_installs", ["org_id", "app_id", "install_id"], unique=False
    )
    op.create_table(
        "install_inputs",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("install_id", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("values", Json, nullable=False),
        sa.Column("sealed", Json, nullable=False),
        sa.Column("at", Instant(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["org_id", "install_id"],
            ["installs.org_id", "installs.id"],
        ),
        sa.PrimaryKeyConstraint("org_id", "install_id", "version"),
    )
    op.create_table(
        "install_labels",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("install_id", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["org_id", "install_id"],
            ["installs.org_id", "installs.id"],
        ),
        sa.PrimaryKeyConstraint("org_id", "install_id", "key"),
    )
    op.create_index(
        "install_labels_by_value",
        "install_labels",
        ["org_id", "key", "value", "install_id"],
        unique=False,
    )
    op.create_table(
        "install_parts",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("install_id", sa.Text(), nullable=False),
        sa.Column("part", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("drift", sa.Text(), nullable=False),
        sa.Column("config_id", sa.Text(), nullable=True),
        sa.Column("build_id", sa.Text(), nullable=True),
        sa.Column("workflow_id", sa.Text(), nullable=True),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("changed_at", Instant(), nullable=False),
        sa.Column("drift_at", Instant(), nullable=True),
        sa.ForeignKeyConstraint(
            ["org_id", "install_id"],
            ["installs.org_id", "installs.id"],
        ),
        sa.PrimaryKeyConstraint("org_id", "install_id", "part"),
    )
    op.create_table(
        "install_states",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("install_id", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("at", Instant(), nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("workflow_id", sa.Text(), nullable=True),
        sa.Column("document", Json, nullable=False),
        sa.ForeignKeyConstraint(
            ["org_id", "install_id"],
            ["installs.org_id", "installs.id"],
        ),
        sa.PrimaryKeyConstraint("org_id", "install_id", "version"),
    )
    op.create_table(
        "schedules",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("install_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("cron", sa.Text(), nullable=False),
        sa.Column("detail", Json, nullable=False),
        sa.Column("next_at", Instant(), nullable=False),
        sa.Column("last_at", Instant(), nullable=True),
        sa.Column("last_workflow_id", sa.Text(), nullable=True),
        sa.Column("note", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["org_id", "install_id"],
            ["installs.org_id", "installs.id"],
        ),
        sa.PrimaryKeyConstraint("org_id", "id"),
        sa.UniqueConstraint("org_id", "install_id", "kind", "subject"),
    )
    op.create_index("schedules_due", "schedules", ["next_at"], unique=False)
    op.create_table(
        "stack_codes",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("install_id", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("enrolment_id", sa.Text(), nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("expires_at", Instant(), nullable=False),
        sa.ForeignKeyConstraint(
            ["org_id", "enrolment_id"],
            ["enrolments.org_id", "enrolments.id"],
        ),
        sa.ForeignKeyConstraint(
            ["org_id", "install_id"],
            ["installs.org_id", "installs.id"],
        ),
        sa.PrimaryKeyConstraint("org_id", "id"),
        sa.UniqueConstraint("hash"),
    )
    op.create_table(
        "stack_versions",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("install_id", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("config_id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("outputs", Json, nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("run_at", Instant(), nullable=True),
        sa.ForeignKeyConstraint(
            ["org_id", "install_id"],
            ["installs.org_id", "installs.id"],
        ),
        sa.PrimaryKeyConstraint("org_id", "id"),
        sa.UniqueConstraint("org_id", "install_id", "version"),
    )
    op.create_table(
        "attachments",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("execution_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("queue_id", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("blob", sa.Text(), nullable=False),
        sa.Column("at", Instant(), nullable=False),
        sa.ForeignKeyConstraint(
            ["org_id", "execution_id"],
            ["executions.org_id", "executions.id"],
        ),
        sa.PrimaryKeyConstraint("org_id", "execution_id", "name"),
    )
    op.create_index(
        "attachments_of_queue", "attachments", ["org_id", "queue_id", "name"], unique=False
    )
    op.create_table(
        "tf_locks",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("queue_id", sa.Text(), nullable=False),
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("lock_id", sa.Text(), nullable=False),
        sa.Column("info", Json, nullable=False),
        sa.Column("execution_id", sa.Text(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("at", Instant(), nullable=False),
        sa.ForeignKeyConstraint(
            ["org_id", "execution_id"],
            ["executions.org_id", "executions.id"],
        ),
        sa.ForeignKeyConstraint(
            ["org_id", "queue_id"],
            ["queues.org_id", "queues.id"],
        ),
        sa.PrimaryKeyConstraint("org_id", "queue_id", "workspace"),
    )
    op.create_table(
        "tf_states",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("queue_id", sa.Text(), nullable=False),
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("serial", sa.BigInteger(), nullable=False),
        sa.Column("lineage", sa.Text(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("blob", sa.Text(), nullable=False),
        sa.Column("resources", Json, nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("execution_id", sa.Text(), nullable=False),
        sa.Column("at", Instant(), nullable=False),
        sa.ForeignKeyConstraint(
            ["org_id", "execution_id"],
            ["executions.org_id", "executions.id"],
        ),
        sa.ForeignKeyConstraint(
            ["org_id", "queue_id"],
            ["queues.org_id", "queues.id"],
        ),
        sa.PrimaryKeyConstraint("org_id", "queue_id", "workspace", "version"),
    )
    op.add_column("installs", sa.Column("deleted_at", Instant(), nullable=True))
    op.create_index("runners_of_queue", "runners", ["org_id", "queue_id"], unique=False)
    op.add_column("workflows", sa.Column("kind", sa.Text(), server_default="", nullable=False))
    op.create_index("workflows_of_queue", "workflows", ["org_id", "queue_id", "id"], unique=False)
