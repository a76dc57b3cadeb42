"""Size and number of the pieces of logs, how far a log is merged, when to try again."""

import sqlalchemy as sa
from alembic import op

from exclave.storage.engine.types import Instant

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_UNMERGED = sa.text("state = 'ended' AND NOT log_merged")


def upgrade() -> None:
    """Expand the schema."""
    op.add_column("log_segments", sa.Column("stored", sa.BigInteger(), nullable=True))
    for name, kind in (
        ("log_pieces", sa.Integer()),
        ("merged_to", sa.BigInteger()),
        ("merge_tries", sa.Integer()),
    ):
        count = sa.Column(name, kind, nullable=False, server_default=sa.text("0"))
        op.add_column("executions", count)
    op.add_column("executions", sa.Column("merge_after", Instant(), nullable=True))
    op.create_index(
        "executions_to_merge",
        "executions",
        ["org_id", "ended_at"],
        sqlite_where=_UNMERGED,
        postgresql_where=_UNMERGED,
    )
