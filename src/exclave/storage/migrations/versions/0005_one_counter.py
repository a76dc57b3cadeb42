"""The epochs of a queue count its envelopes too."""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Contract the schema."""
    op.drop_column("runners", "sequence")
