"""What the newest poll of a runner waits for, so that any server can answer it."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Expand the schema."""
    op.add_column("runners", sa.Column("poll_nonce", sa.Text(), nullable=True))
    op.add_column("runners", sa.Column("poll_free", sa.Integer(), nullable=True))
