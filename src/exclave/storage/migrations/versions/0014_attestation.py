"""Runners that enrol by attestation: whose machine may, and the nonces that were used."""

import sqlalchemy as sa
from alembic import op

from exclave.storage.engine.types import Instant

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Expand the schema."""
    op.create_table(
        "install_identities",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("install_id", sa.Text(), nullable=False),
        *(
            sa.Column(name, sa.Text(), nullable=False)
            for name in ("cloud", "region", "account", "tenant", "principal")
        ),
        sa.Column("pinned_by", sa.Text(), nullable=True),
        sa.Column("pinned_at", Instant(), nullable=True),
        sa.Column("must_confirm", sa.Boolean(), nullable=False),
        sa.Column("confirmed_by", sa.Text(), nullable=True),
        sa.Column("confirmed_at", Instant(), nullable=True),
        sa.Column("runner_id", sa.Text(), nullable=True),
        sa.Column("last_machine", sa.Text(), nullable=False),
        sa.Column("last_at", Instant(), nullable=True),
        sa.Column("alarm", sa.Text(), nullable=False),
        sa.Column("alarm_at", Instant(), nullable=True),
        sa.PrimaryKeyConstraint("org_id", "install_id"),
        sa.ForeignKeyConstraint(["org_id", "install_id"], ["installs.org_id", "installs.id"]),
    )
    op.create_table(
        "attest_nonces",
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("expires_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("hash"),
    )
    op.create_index("attest_nonces_expire", "attest_nonces", ["expires_at"])
