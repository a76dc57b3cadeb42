"""Storage quotas: count what orgs store in the transaction that stores it; refuse excess."""

from exclave.control.deps import Deps
from exclave.domain.identity import OrgId
from exclave.domain.quotas import Counted, QuotaExceeded, Stored
from exclave.storage import usage, usage_counts
from exclave.storage.engine.database import Tx
from exclave.storage.usage import Account, Amount


def reserve(
    tx: Tx, deps: Deps, org: OrgId, kind: Stored, size: int, items: int = 0, *, slack: int = 1
) -> None:
    """Count bytes and items that this transaction stores; `QuotaExceeded` above the limit.

    `slack` multiplies the limit, for what running jobs must be able to store.
    """
    most = find_limit(deps, kind)
    top = Amount(most.bytes * slack, most.items * slack)
    if not usage.add_usage(tx, Account(org, kind), Amount(size, items), top):
        raise explain(kind, most)


def release(tx: Tx, org: OrgId, kind: Stored, size: int, items: int = 0) -> None:
    """Subtract bytes and items that were deleted."""
    if size or items:
        usage.subtract_usage(tx, Account(org, kind), Amount(size, items))


def find_limit(deps: Deps, kind: Stored) -> Amount:
    """Return the limit of a kind; 0 means none."""
    limits = deps.quotas
    match kind:
        case Stored.REGISTRY:
            return Amount(limits.registry_bytes)
        case Stored.UPLOADS:
            return Amount(0, limits.uploads)
        case Stored.ATTACHMENTS:
            return Amount(limits.attachments_bytes)
        case Stored.TF_STATES:
            return Amount(limits.tf_states_bytes)
        case Stored.CONFIGS:
            return Amount(limits.configs_bytes)
        case Stored.DOCUMENTS:
            return Amount(limits.documents_bytes)
        case Stored.LOGS:
            return Amount(limits.logs_bytes)


def explain(kind: Stored, most: Amount) -> QuotaExceeded:
    """Return the problem that names the exceeded limit."""
    limit, unit = (most.bytes, "bytes") if most.bytes else (most.items, "items")
    return QuotaExceeded(
        f"the org may store {limit} {unit} of {kind} and has used them up",
        quota=str(kind),
        limit=limit,
    )


def check_count(tx: Tx, deps: Deps, org: OrgId, kind: Counted, added: int = 1) -> None:
    """Refuse rows beyond the limit of their kind, before they are added.

    The org's account is locked first, so that two servers cannot pass the limit together.
    """
    most: int = getattr(deps.quotas, kind)
    if not most:
        return
    usage.lock_count(tx, org, kind)
    if usage_counts.count_rows(tx, org, kind, most + 1) + added > most:
        raise QuotaExceeded(
            f"the org may have {most} {kind}",
            quota=str(kind),
            limit=most,
            hint="Remove some that are not needed any more, or ask the operator of the control"
            " plane for more.",
        )
