"""What scans for drift found, and what people accepted of it."""

import sqlalchemy as sa
from alembic import op

from exclave.storage.engine.types import Instant

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

_TEXTS = ("id", "install_id", "part", "fingerprint", "address", "path", "change", "detail")


def upgrade() -> None:
    """Expand the schema."""
    op.create_table(
        "drift_findings",
        sa.Column("org_id", sa.Text(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in _TEXTS),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("first_at", Instant(), nullable=False),
        sa.Column("last_at", Instant(), nullable=False),
        sa.Column("changed_at", Instant(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("org_id", "id"),
        sa.UniqueConstraint("org_id", "install_id", "part", "fingerprint"),
        sa.ForeignKeyConstraint(["org_id", "install_id"], ["installs.org_id", "installs.id"]),
    )
