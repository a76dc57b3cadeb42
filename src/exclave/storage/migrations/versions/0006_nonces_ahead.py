"""A nonce knows which generation is to be presented with it."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Expand the schema."""
    op.add_column("runner_nonces", sa.Column("generation", sa.Integer(), nullable=True))
    op.create_index("runner_nonces_of_runner", "runner_nonces", ["org_id", "runner_id"])
