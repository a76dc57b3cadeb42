"""Who made a credential, who stands behind a change, who administers the instance."""

import sqlalchemy as sa
from alembic import op

from exclave.storage.engine.types import Instant, Json

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_NEW_COLUMNS = {
    "orgs": (
        sa.Column("four_eyes", sa.Boolean(), nullable=True),
        sa.Column("four_eyes_off_by", sa.Text(), nullable=True),
        sa.Column("four_eyes_off_at", Instant(), nullable=True),
    ),
    "api_tokens": (
        sa.Column("parent_id", sa.Text(), nullable=True),
        sa.Column("person_id", sa.Text(), nullable=True),
        sa.Column("instance_admin", sa.Boolean(), nullable=True),
    ),
    "enrolments": (sa.Column("parent_id", sa.Text(), nullable=True),),
    "registry_tokens": (sa.Column("parent_id", sa.Text(), nullable=True),),
    "stack_codes": (sa.Column("parent_id", sa.Text(), nullable=True),),
    "runners": (
        sa.Column("alarm", sa.Text(), nullable=True),
        sa.Column("alarm_at", Instant(), nullable=True),
    ),
    "workflows": (
        sa.Column("by_person", sa.Text(), nullable=True),
        sa.Column("by_token", sa.Text(), nullable=True),
    ),
    "configs": (
        sa.Column("by_person", sa.Text(), nullable=True),
        sa.Column("by_token", sa.Text(), nullable=True),
    ),
    "app_installs": (sa.Column("config_by", sa.Text(), nullable=True),),
}


def upgrade() -> None:
    """Expand the schema, and name the instance admins of a database that has orgs already."""
    for table, columns in _NEW_COLUMNS.items():
        for column in columns:
            op.add_column(table, column)
    _name_instance_admins(op.get_bind())


def _name_instance_admins(connection: sa.Connection) -> None:
    """Let the admins of the oldest org keep the right to create orgs; nobody else has it."""
    orgs = sa.table("orgs", sa.column("id"), sa.column("created_at"))
    tokens = sa.table(
        "api_tokens", sa.column("org_id"), sa.column("id"), sa.column("grants", Json),
        sa.column("instance_admin", sa.Boolean()),
    )  # fmt: skip
    first = connection.execute(
        sa.select(orgs.c.id).order_by(orgs.c.created_at, orgs.c.id).limit(1)
    ).scalar()
    if first is None:
        return
    rows = connection.execute(
        sa.select(tokens.c.id, tokens.c.grants).where(tokens.c.org_id == first)
    ).all()
    admins = [row.id for row in rows if any(grant[:2] == ["admin", "org"] for grant in row.grants)]
    for token in admins:
        connection.execute(
            sa.update(tokens)
            .where(tokens.c.org_id == first, tokens.c.id == token)
            .values(instance_admin=True)
        )
