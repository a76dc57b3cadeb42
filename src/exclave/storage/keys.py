"""Queries for the signing keys and for the cluster's own row."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import func, insert, select, update

from exclave.storage.engine.database import Tx
from exclave.storage.engine.statements import Prepared
from exclave.storage.tables.identity import cluster, signing_keys


class SigningKey(NamedTuple):
    """A key of the chain; each but the first is signed by the one before it."""

    kid: str
    position: int
    public_key: str
    sealed: str
    """The private key, encrypted."""
    signed_by: str | None
    signature: str | None
    created_at: datetime


def add_cluster(tx: Tx, name: str) -> None:
    """Create the cluster's row."""
    tx.run(
        tx.insert_missing(cluster), {"id": 1, "name": name, "generation": 1, "created_at": tx.now}
    )


def raise_generation(tx: Tx) -> int:
    """Make all epochs to come higher than any that was ever handed out."""
    raised = update(cluster).values(generation=cluster.c.generation + 1)
    return int(tx.run(raised.returning(cluster.c.generation)).scalar_one())


_CHAIN = Prepared(select(signing_keys).order_by(signing_keys.c.position), SigningKey)


def lock_chain(tx: Tx) -> None:
    """Lock the list of keys until the transaction ends."""
    tx.run(select(cluster.c.id).with_for_update())


def list_keys(tx: Tx) -> Sequence[SigningKey]:
    """List the signing keys, oldest first."""
    return tx.all(_CHAIN)


def add_key(
    tx: Tx, kid: str, *, public_key: str, sealed: str, signed_by: str | None, signature: str | None
) -> None:
    """Append a signing key to the chain."""
    last = tx.run(select(func.coalesce(func.max(signing_keys.c.position), 0))).scalar_one()
    row = {"kid": kid, "position": last + 1, "public_key": public_key, "sealed": sealed}
    tx.run(
        insert(signing_keys).values(
            **row, signed_by=signed_by, signature=signature, created_at=tx.now
        )
    )
