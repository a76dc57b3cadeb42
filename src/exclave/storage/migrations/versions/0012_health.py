"""Whether a component of an install stays healthy after its deploy."""

import sqlalchemy as sa
from alembic import op

from exclave.storage.engine.types import Instant

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Expand the schema."""
    for name in ("health", "health_reason"):
        op.add_column(
            "install_parts", sa.Column(name, sa.Text(), nullable=False, server_default="")
        )
    op.add_column("install_parts", sa.Column("health_at", Instant(), nullable=True))
