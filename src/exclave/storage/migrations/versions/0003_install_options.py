"""What the file of an install says beside inputs: approval, toggles, overrides; sealed inputs."""

import sqlalchemy as sa
from alembic import op

from exclave.storage.engine.types import Json

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Expand the schema."""
    op.add_column("app_installs", sa.Column("approval", sa.Text(), nullable=True))
    op.add_column("app_installs", sa.Column("toggles", Json, nullable=True))
    op.add_column("app_installs", sa.Column("overrides", Json, nullable=True))
    op.add_column("workflows", sa.Column("sealed", Json, nullable=True))
