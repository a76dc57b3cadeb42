"""What all tables share: their metadata, the column of the tenant, references inside a tenant."""

from sqlalchemy import (
    Column,
    ForeignKeyConstraint,
    MetaData,
    Text,
)

metadata = MetaData()

INSTANCE_TABLES = frozenset({"attest_nonces", "cluster", "signing_keys", "orgs"})
"""Tables without a tenant; `orgs` is the tenants, nonces are used before any is known."""


def org_column() -> Column[str]:
    """Make the column of the tenant."""
    return Column("org_id", Text, nullable=False)


def of_org(column: str, table: str) -> ForeignKeyConstraint:
    """Point at another thing of the same tenant: a row can never refer across tenants."""
    return ForeignKeyConstraint(["org_id", column], [f"{table}.org_id", f"{table}.id"])
