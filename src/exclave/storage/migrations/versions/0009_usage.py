"""What each org has stored by kind, counted once for what is there already."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table and fill it."""
    op.create_table(
        "org_usage",
        sa.Column("org_id", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("used_bytes", sa.BigInteger(), nullable=False),
        sa.Column("used_items", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("org_id", "scope", "kind"),
        sa.ForeignKeyConstraint(["org_id"], ["orgs.id"]),
    )
    op.add_column(
        "oci_uploads",
        sa.Column("reserved", sa.BigInteger(), nullable=False, server_default="0"),
    )
    op.execute("UPDATE oci_uploads SET reserved = size")
    for kind, scope, source in _SOURCES:
        group = f"org_id, {scope}" if scope else "org_id"
        op.execute(_FILL.format(kind=kind, scope=scope or "''", source=source, group=group))


_FILL = (
    "INSERT INTO org_usage (org_id, scope, kind, used_bytes, used_items)"
    " SELECT org_id, {scope}, '{kind}', CAST(SUM(size) AS BIGINT), SUM(items)"
    " FROM ({source}) AS stored GROUP BY {group}"
)
_REGISTRY = (
    "SELECT org_id, size, 1 AS items FROM oci_blobs"
    " UNION ALL SELECT org_id, size, 1 FROM oci_manifests"
    " UNION ALL SELECT org_id, size, 0 FROM oci_uploads"
)
_CONFIGS = (
    "SELECT org_id, LENGTH(CAST(outline AS TEXT)) AS size, 1 AS items FROM configs"
    " UNION ALL SELECT org_id, LENGTH(CAST(value AS TEXT)), 0 FROM config_parts"
)
_DOCUMENTS = (
    "SELECT org_id, install_id, LENGTH(CAST(document AS TEXT)) AS size, 1 AS items"
    " FROM install_states"
    ' UNION ALL SELECT org_id, install_id, LENGTH(CAST("values" AS TEXT))'
    " + LENGTH(CAST(sealed AS TEXT)), 1 FROM install_inputs"
)
_SOURCES = (
    ("registry", "", _REGISTRY),
    ("uploads", "", "SELECT org_id, 0 AS size, 1 AS items FROM oci_uploads"),
    ("attachments", "", "SELECT org_id, size, 1 AS items FROM attachments"),
    ("tf_states", "", "SELECT org_id, size, 1 AS items FROM tf_states"),
    ("configs", "", _CONFIGS),
    ("documents", "", _DOCUMENTS),
    ("documents", "install_id", _DOCUMENTS),
    ("logs", "", "SELECT org_id, log_bytes AS size, 1 AS items FROM executions"),
)
"""Kind, scope, and the rows to add up. The archives of configs are not known to the database."""
