"""A version of a Terraform state may hold the bytes of an older one."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Expand the schema."""
    op.add_column("tf_states", sa.Column("restored_from", sa.Integer(), nullable=True))
