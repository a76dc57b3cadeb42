"""Tables of attestation: the account of each install, and the nonces that were used."""

from sqlalchemy import Boolean, Column, Index, PrimaryKeyConstraint, Table, Text

from exclave.domain.install_identities import PinnedBy
from exclave.domain.stacks import Cloud
from exclave.storage.engine.types import EnumText, Instant
from exclave.storage.tables.schema import metadata, of_org, org_column

install_identities = Table(
    "install_identities",
    metadata,
    org_column(),
    Column("install_id", Text, nullable=False),
    Column("cloud", EnumText(Cloud), nullable=False),
    Column("region", Text, nullable=False),
    Column("account", Text, nullable=False),
    Column("tenant", Text, nullable=False),
    Column("principal", Text, nullable=False, default=""),
    Column("pinned_by", EnumText(PinnedBy)),
    Column("pinned_at", Instant),
    Column("must_confirm", Boolean, nullable=False, default=False),
    Column("confirmed_by", Text),
    Column("confirmed_at", Instant),
    Column("runner_id", Text),
    Column("last_machine", Text, nullable=False, default=""),
    Column("last_at", Instant),
    Column("alarm", Text, nullable=False, default=""),
    Column("alarm_at", Instant),
    PrimaryKeyConstraint("org_id", "install_id"),
    of_org("install_id", "installs"),
)

attest_nonces = Table(
    "attest_nonces",
    metadata,
    Column("hash", Text, primary_key=True),
    Column("expires_at", Instant, nullable=False),
    Index("attest_nonces_expire", "expires_at"),
)
"""Without a tenant: a nonce is used before anybody has proven anything."""
