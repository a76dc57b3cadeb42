"""The chore that stores counters kept in memory and refreshes counts checked from memory."""

from exclave.control.deps import Deps
from exclave.control.limits import quotas
from exclave.control.runtime.exhausted_quotas import stops_work
from exclave.domain.quotas import QuotaExceeded, Stored
from exclave.storage import accounts, metrics, usage
from exclave.storage.engine.database import Tx

EVERY_S = 10.0
_AT_ONCE = 200


async def settle(deps: Deps) -> None:
    """Run one round."""
    await _write_uses(deps)
    await _write_growth(deps)
    await deps.db.read(lambda tx: _count(tx, deps))


async def _write_uses(deps: Deps) -> None:
    """Store which tokens were used, in small batches; record a failed batch again."""
    used = deps.token_uses.pop_all()
    for start in range(0, len(used), _AT_ONCE):
        some = used[start : start + _AT_ONCE]
        await deps.db.write(lambda tx, some=some: accounts.note_token_uses(tx, some))  # type: ignore[misc]


async def _write_growth(deps: Deps) -> None:
    grown = deps.db.growth.pop_all()
    if not grown:
        return

    def write(tx: Tx) -> None:
        for account in sorted(grown):
            usage.add_usage(tx, account, grown[account])

    try:
        await deps.db.write(write)
    except BaseException:
        deps.db.growth.put_back(grown)
        raise


def _count(tx: Tx, deps: Deps) -> None:
    over: dict[str, QuotaExceeded] = {}
    for row in usage.list_all_usage(tx):
        if stops_work(row.kind):
            most = quotas.find_limit(deps, Stored(row.kind))
            if most.bytes and row.used_bytes > most.bytes:
                over[row.org_id] = quotas.explain(Stored(row.kind), most)
    deps.exhausted_quotas.replace(metrics.count_running_by_org(tx), over)
