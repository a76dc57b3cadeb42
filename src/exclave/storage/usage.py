"""Queries for what orgs have stored: changed together with the rows that they count."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import bindparam, case, select, update

from exclave.domain.identity import OrgId
from exclave.domain.quotas import Counted
from exclave.storage.engine.database import Tx
from exclave.storage.engine.statements import Prepared
from exclave.storage.tables.usage import org_usage
from exclave.storage.usage_amounts import Account as Account
from exclave.storage.usage_amounts import Amount as Amount

NO_LIMIT = 1 << 62


class OrgUsage(NamedTuple):
    """How many bytes an org has stored of a kind."""

    org_id: OrgId
    kind: str
    """A `Stored` or a `Counted`."""
    used_bytes: int


_at = org_usage.c
_MINE = (
    _at.org_id == bindparam("org"),
    _at.scope == bindparam("scope"),
    _at.kind == bindparam("kind"),
)
_ADD = Prepared(
    update(org_usage)
    .where(*_MINE)
    .where(_at.used_bytes + bindparam("size") <= bindparam("most_bytes"))
    .where(_at.used_items + bindparam("items") <= bindparam("most_items"))
    .values(
        used_bytes=_at.used_bytes + bindparam("size"),
        used_items=_at.used_items + bindparam("items"),
    )
)
_TAKE = Prepared(
    update(org_usage)
    .where(*_MINE)
    .values(
        used_bytes=case(
            (_at.used_bytes > bindparam("size"), _at.used_bytes - bindparam("size")), else_=0
        ),
        used_items=case(
            (_at.used_items > bindparam("items"), _at.used_items - bindparam("items")), else_=0
        ),
    )
)
_FIND = Prepared(select(_at.used_bytes, _at.used_items).where(*_MINE))


def add_usage(tx: Tx, account: Account, amount: Amount, most: Amount | None = None) -> bool:
    """Count what is about to be stored; false, and nothing counted, if it passes `most`.

    Limit and change are one statement, so that two servers cannot pass it together.
    """
    top = most or Amount(NO_LIMIT, NO_LIMIT)
    values = {
        "org": account.org,
        "scope": account.scope,
        "kind": str(account.kind),
        "size": amount.bytes,
        "items": amount.items,
        "most_bytes": top.bytes or NO_LIMIT,
        "most_items": top.items or NO_LIMIT,
    }
    if tx.count(_ADD, **values) == 1:
        return True
    row = {"org_id": account.org, "scope": account.scope, "kind": str(account.kind)}
    tx.run(tx.insert_missing(org_usage).values(**row, used_bytes=0, used_items=0))
    return tx.count(_ADD, **values) == 1


def subtract_usage(tx: Tx, account: Account, amount: Amount) -> None:
    """Count what is gone; never below zero."""
    tx.count(
        _TAKE,
        org=account.org,
        scope=account.scope,
        kind=str(account.kind),
        size=amount.bytes,
        items=amount.items,
    )


def find_usage(tx: Tx, account: Account) -> Amount:
    """Read what is counted in one account."""
    row = tx.first(_FIND, org=account.org, scope=account.scope, kind=str(account.kind))
    return Amount() if row is None else Amount(row.used_bytes, row.used_items)


def note_growth(tx: Tx, account: Account, amount: Amount) -> None:
    """Count what this transaction stores a few seconds after its commit, without a statement."""
    growth = tx.growth
    tx.when_committed(lambda: growth.add(account, amount))


def list_usage(tx: Tx, org: OrgId) -> Mapping[str, Amount]:
    """List what an org has stored, by kind."""
    rows = tx.all(select(org_usage).where(_at.org_id == org, _at.scope == ""))
    return {row.kind: Amount(row.used_bytes, row.used_items) for row in rows}


def list_all_usage(tx: Tx) -> Sequence[OrgUsage]:
    """List what every org has stored, by kind."""
    query = select(_at.org_id, _at.kind, _at.used_bytes).where(_at.scope == "")
    return tx.all(query, OrgUsage)


def lock_count(tx: Tx, org: OrgId, kind: Counted) -> None:
    """Lock the count of a kind of rows of the org until the transaction ends."""
    row = {"org_id": org, "scope": "", "kind": str(kind)}
    tx.run(tx.insert_missing(org_usage).values(**row, used_bytes=0, used_items=0))
    mine = (_at.org_id == org, _at.scope == "", _at.kind == str(kind))
    tx.first(select(_at.kind).where(*mine).with_for_update())
