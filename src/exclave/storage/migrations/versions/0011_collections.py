"""When an org had its last collection of garbage: servers come and go more often than that."""

import sqlalchemy as sa
from alembic import op

from exclave.storage.engine.types import Instant

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Expand the schema."""
    op.add_column("orgs", sa.Column("collected_at", Instant(), nullable=True))
