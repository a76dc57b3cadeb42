"""The table of what each org has stored, by kind."""

from sqlalchemy import BigInteger, Column, ForeignKeyConstraint, PrimaryKeyConstraint, Table, Text

from exclave.storage.tables.schema import metadata, org_column

org_usage = Table(
    "org_usage",
    metadata,
    org_column(),
    Column("scope", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("used_bytes", BigInteger, nullable=False),
    Column("used_items", BigInteger, nullable=False),
    PrimaryKeyConstraint("org_id", "scope", "kind"),
    ForeignKeyConstraint(["org_id"], ["orgs.id"]),
)
"""`scope` is empty for the org as a whole, or the id of one of its installs."""
