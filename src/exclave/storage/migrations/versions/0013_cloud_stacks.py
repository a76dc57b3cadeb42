"""Installs in clouds: where they are, what their Stacks are made from, links for customers."""

import sqlalchemy as sa
from alembic import op

from exclave.storage.engine.types import Instant, Json

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Expand the schema."""
    for name in ("region", "account", "tenant"):
        op.add_column("app_installs", sa.Column(name, sa.Text(), nullable=True))
    for name in ("digest", "generator", "applied_digest"):
        op.add_column("stack_versions", sa.Column(name, sa.Text(), nullable=True))
    for name in ("model", "files", "report", "beacon"):
        op.add_column("stack_versions", sa.Column(name, Json, nullable=True))
    op.add_column("stack_versions", sa.Column("applied_at", Instant(), nullable=True))
    op.create_table(
        "stack_views",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("install_id", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False, unique=True),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("expires_at", Instant(), nullable=False),
        sa.Column("revoked_at", Instant(), nullable=True),
        sa.PrimaryKeyConstraint("org_id", "id"),
        sa.ForeignKeyConstraint(["org_id", "install_id"], ["installs.org_id", "installs.id"]),
    )
    op.create_index("stack_views_of_install", "stack_views", ["org_id", "install_id", "id"])
    op.create_index("installs_by_id", "installs", ["id"])
