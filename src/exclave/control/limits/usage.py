"""Usage of an org in the Control API."""

from exclave.control.access import require
from exclave.control.deps import Deps
from exclave.control.limits.quotas import find_limit
from exclave.domain.identity import OrgId, Right, User
from exclave.domain.quotas import Counted, Stored
from exclave.storage import usage, usage_counts
from exclave.storage.engine.database import Tx
from exclave.storage.usage import Amount
from exclave.wire.usage import UsageLine, UsageReply

_MOST_SHOWN = 1_000_000


async def show_usage(deps: Deps, user: User) -> UsageReply:
    """Return how much the org stores and how many rows it has, each with its limit."""
    require(user, Right.READ)
    return await deps.db.read(lambda tx: _gather(tx, deps, user.org))


def _gather(tx: Tx, deps: Deps, org: OrgId) -> UsageReply:
    amounts = usage.list_usage(tx, org)
    stored = [_show_stored(deps, kind, amounts.get(kind, Amount())) for kind in Stored]
    return UsageReply(kinds=[*stored, *(_count(tx, deps, org, kind) for kind in Counted)])


def _show_stored(deps: Deps, kind: Stored, used: Amount) -> UsageLine:
    most = find_limit(deps, kind)
    return UsageLine(
        kind=kind,
        bytes=None if kind is Stored.UPLOADS else used.bytes,
        bytes_limit=most.bytes or None,
        items=used.items,
        items_limit=most.items or None,
    )


def _count(tx: Tx, deps: Deps, org: OrgId, kind: Counted) -> UsageLine:
    most: int = getattr(deps.quotas, kind)
    return UsageLine(
        kind=kind,
        bytes=None,
        bytes_limit=None,
        items_limit=most or None,
        items=usage_counts.count_rows(tx, org, kind, _MOST_SHOWN),
    )
