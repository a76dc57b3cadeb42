"""Tables of installs of an app: inputs, state versions, parts, Stacks, runs and schedules."""

from sqlalchemy import (
    Boolean,
    Column,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)

from exclave.domain.drift_findings import FindingState
from exclave.domain.installs import (
    ApprovalOption,
    Drift,
    Health,
    InstallState,
    ManagedBy,
    PartState,
)
from exclave.domain.jobs import JobState
from exclave.domain.schedules import ScheduleKind
from exclave.domain.stacks import Cloud, StackState
from exclave.storage.engine.types import EnumText, Instant, Json
from exclave.storage.tables.schema import metadata, of_org, org_column

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
    Index("installs_by_id", "id"),  # for machines that have proved nothing: no org is known yet
)

app_installs = Table(
    "app_installs",
    metadata,
    org_column(),
    Column("install_id", Text, nullable=False),
    Column("app_id", Text, nullable=False),
    Column("config_id", Text, nullable=False),
    Column("target", EnumText(Cloud), nullable=False),
    Column("state", EnumText(InstallState), nullable=False),
    Column("approve_all", Boolean, nullable=False),
    Column("here", Boolean, nullable=False),
    Column("managed_by", EnumText(ManagedBy), nullable=False, default=ManagedBy.PEOPLE),
    Column("state_version", Integer, nullable=False),
    Column("input_version", Integer, nullable=False),
    Column("approval", EnumText(ApprovalOption)),
    Column("toggles", Json),
    Column("overrides", Json),
    Column("config_by", Text),
    Column("region", Text),
    Column("account", Text),
    Column("tenant", Text),
    PrimaryKeyConstraint("org_id", "install_id"),
    of_org("install_id", "installs"),
    of_org("app_id", "apps"),
    of_org("config_id", "configs"),
    Index("app_installs_of_app", "org_id", "app_id", "install_id"),
    Index("app_installs_in_state", "org_id", "state", "install_id"),
)

install_labels = Table(
    "install_labels",
    metadata,
    org_column(),
    Column("install_id", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("value", Text, nullable=False),
    PrimaryKeyConstraint("org_id", "install_id", "key"),
    of_org("install_id", "installs"),
    Index("install_labels_by_value", "org_id", "key", "value", "install_id"),
)

install_inputs = Table(
    "install_inputs",
    metadata,
    org_column(),
    Column("install_id", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("values", Json, nullable=False),
    Column("sealed", Json, nullable=False),
    Column("at", Instant, nullable=False),
    Column("by", Text, nullable=False),
    PrimaryKeyConstraint("org_id", "install_id", "version"),
    of_org("install_id", "installs"),
)

install_states = Table(
    "install_states",
    metadata,
    org_column(),
    Column("install_id", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("at", Instant, nullable=False),
    Column("cause", Text, nullable=False),
    Column("workflow_id", Text),
    Column("document", Json, nullable=False),
    PrimaryKeyConstraint("org_id", "install_id", "version"),
    of_org("install_id", "installs"),
)

install_parts = Table(
    "install_parts",
    metadata,
    org_column(),
    Column("install_id", Text, nullable=False),
    Column("part", Text, nullable=False),
    Column("state", EnumText(PartState), nullable=False),
    Column("drift", EnumText(Drift), nullable=False, default=Drift.UNKNOWN),
    Column("config_id", Text),
    Column("build_id", Text),
    Column("workflow_id", Text),
    Column("message", Text, nullable=False, default=""),
    Column("changed_at", Instant, nullable=False),
    Column("drift_at", Instant),
    Column("health", EnumText(Health), nullable=False, default=Health.UNKNOWN),
    Column("health_reason", Text, nullable=False, default=""),
    Column("health_at", Instant),
    PrimaryKeyConstraint("org_id", "install_id", "part"),
    of_org("install_id", "installs"),
)

drift_findings = Table(
    "drift_findings",
    metadata,
    org_column(),
    Column("id", Text, nullable=False),
    Column("install_id", Text, nullable=False),
    Column("part", Text, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("address", Text, nullable=False),
    Column("path", Text, nullable=False),
    Column("change", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("state", EnumText(FindingState), nullable=False),
    Column("first_at", Instant, nullable=False),
    Column("last_at", Instant, nullable=False),
    Column("changed_at", Instant, nullable=False),
    Column("by", Text, nullable=False),
    Column("reason", Text, nullable=False),
    PrimaryKeyConstraint("org_id", "id"),
    UniqueConstraint("org_id", "install_id", "part", "fingerprint"),
    of_org("install_id", "installs"),
)

stack_versions = Table(
    "stack_versions",
    metadata,
    org_column(),
    Column("id", Text, nullable=False),
    Column("install_id", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("config_id", Text, nullable=False),
    Column("state", EnumText(StackState), nullable=False),
    Column("outputs", Json, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("run_at", Instant),
    Column("digest", Text),
    Column("model", Json),
    Column("files", Json),
    Column("generator", Text),
    Column("applied_digest", Text),
    Column("applied_at", Instant),
    Column("report", Json),
    Column("beacon", Json),
    PrimaryKeyConstraint("org_id", "id"),
    UniqueConstraint("org_id", "install_id", "version"),
    of_org("install_id", "installs"),
)

action_runs = Table(
    "action_runs",
    metadata,
    org_column(),
    Column("id", Text, nullable=False),
    Column("install_id", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("trigger", Text, nullable=False),
    Column("workflow_id", Text, nullable=False),
    Column("step", Text, nullable=False),
    Column("state", EnumText(JobState), nullable=False),
    Column("outputs", Json, nullable=False),
    Column("message", Text, nullable=False, default=""),
    Column("started_at", Instant, nullable=False),
    Column("finished_at", Instant),
    PrimaryKeyConstraint("org_id", "id"),
    of_org("install_id", "installs"),
    of_org("workflow_id", "workflows"),
    Index("action_runs_of_install", "org_id", "install_id", "id"),
)

schedules = Table(
    "schedules",
    metadata,
    org_column(),
    Column("id", Text, nullable=False),
    Column("install_id", Text, nullable=False),
    Column("kind", EnumText(ScheduleKind), nullable=False),
    Column("subject", Text, nullable=False),
    Column("cron", Text, nullable=False, default=""),
    Column("detail", Json, nullable=False),
    Column("next_at", Instant, nullable=False),
    Column("last_at", Instant),
    Column("last_workflow_id", Text),
    Column("note", Text, nullable=False, default=""),
    PrimaryKeyConstraint("org_id", "id"),
    UniqueConstraint("org_id", "install_id", "kind", "subject"),
    of_org("install_id", "installs"),
    Index("schedules_due", "next_at"),
)
