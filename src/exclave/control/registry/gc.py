"""Garbage collection of the registry: unreferenced content is deleted, pinned content never."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar

from exclave.base.ids import read_moment
from exclave.base.logs import Log
from exclave.control.access import require
from exclave.control.audit import record
from exclave.control.deps import Deps
from exclave.control.limits import quotas
from exclave.control.registry.pins import find_reachable
from exclave.control.registry.uploads import FOLDER
from exclave.domain.identity import OrgId, Right, User
from exclave.domain.quotas import Stored
from exclave.domain.registry import is_cache
from exclave.storage import registry_blobs, registry_gc
from exclave.storage.engine.database import Tx
from exclave.wire.registry import CollectGarbage, GarbageReport

log = Log("registry")
T = TypeVar("T")

GRACE = timedelta(days=1)
"""How long content stays that nothing names: a push uploads blobs first, the manifest last."""
CACHE_AGE = timedelta(days=7)
"""How long layers of builds stay after they were pushed: a build of that age starts anew."""
EVERY = timedelta(hours=6)
"""How often an org has a collection."""
_AGAIN = timedelta(minutes=15)
"""When a collection is tried again that failed."""
GARBAGE = "garbage"
"""The name of the chore."""
_LOOK_S = 60.0
_ROUND_S = 60.0
_UPLOAD_AGE = timedelta(days=1)
_ORPHAN_AGE = timedelta(days=7)
"""Bytes that no row knows may belong to a transfer that has been under way for long."""


@dataclass(slots=True)
class _Round:
    """One collection in one org."""

    deps: Deps
    org: OrgId
    before: datetime
    dry_run: bool
    manifests: int = 0
    pinned: int = 0
    unlinked: dict[str, set[str]] = field(default_factory=dict)
    """Repositories and the blobs that they lose."""

    async def run(self, step: Callable[[Tx], T]) -> T:
        if self.dry_run:
            return await self.deps.db.read(step)
        return await self.deps.db.write(step, key=self.org)

    def hold(self, tx: Tx) -> None:
        if not self.dry_run:
            registry_blobs.hold_off_pushes(tx, self.org)


async def collect_garbage(deps: Deps, user: User, body: CollectGarbage) -> GarbageReport:
    """Collect garbage on demand; with `dry_run`, only return what would be deleted."""
    require(user, Right.ADMINISTER)
    age = timedelta(seconds=body.older_than_s)
    report = await collect_org(deps, user.org, age, dry_run=body.dry_run)
    if not body.dry_run:
        texts = {name: str(value) for name, value in report.model_dump().items()}
        await deps.db.write(
            lambda tx: record(tx, deps, user.org, user.name, "garbage_collected", user.org, **texts)
        )
    return report


async def collect_due(deps: Deps) -> float:
    """Collect in the orgs that are due, one after the other; return the seconds to the next round.

    When an org had its last collection is stored, so that neither restarts nor other servers
    change how often it has one.
    """
    began = deps.clock.monotonic()
    tally = deps.chores.of(GARBAGE)
    while deps.clock.monotonic() - began < _ROUND_S:
        org = await deps.db.write(_claim_org)
        if org is None:
            return _LOOK_S
        try:
            await _collect_scheduled(deps, org)
        except Exception as error:  # noqa: BLE001 - the edge of one org
            log.error("garbage_collection_failed", exc=error, org=org)
            tally.rows_failed += 1
            await deps.db.write(lambda tx, org=org: _retry_soon(tx, org))  # type: ignore[misc]
    return 0.0


def _claim_org(tx: Tx) -> OrgId | None:
    """Claim an org whose collection is due, so that only one of all servers collects it."""
    before = tx.now - EVERY
    while (org := registry_gc.find_due(tx, before)) is not None:
        if registry_gc.claim_collection(tx, org, before):
            return org
    return None


def _retry_soon(tx: Tx, org: OrgId) -> None:
    registry_gc.set_collected(tx, org, tx.now - EVERY + _AGAIN)


async def _collect_scheduled(deps: Deps, org: OrgId) -> None:
    report = await collect_org(deps, org, GRACE)
    if report.blobs or report.manifests or report.uploads or report.orphans:
        log.info("garbage_collected", org=org, **report.model_dump(exclude={"dry_run"}))


async def collect_org(
    deps: Deps, org: OrgId, age: timedelta, *, dry_run: bool = False
) -> GarbageReport:
    """Collect in one org: repository by repository, so that no push waits for long."""
    turn = _Round(deps, org, deps.clock.now() - age, dry_run)
    for name in await deps.db.read(lambda tx: registry_gc.list_names(tx, org)):
        await turn.run(lambda tx, name=name: _collect_repository(tx, turn, name))  # type: ignore[misc]
    blobs, size, keys = await turn.run(lambda tx: _collect_blobs(tx, turn))
    uploads, pieces = await turn.run(lambda tx: _collect_uploads(tx, turn, max(age, _UPLOAD_AGE)))
    orphans = await _find_orphans(turn)
    for key in [] if dry_run else [*keys, *pieces, *orphans]:
        await deps.blobs.delete(key)
    return GarbageReport(
        dry_run=dry_run,
        manifests=turn.manifests,
        blobs=blobs,
        bytes=size,
        uploads=uploads,
        orphans=len(orphans),
        pinned=turn.pinned,
    )


def _collect_repository(tx: Tx, turn: _Round, name: str) -> None:
    """Delete old manifests and blobs of a repository that are not reachable."""
    turn.hold(tx)
    org, before = turn.org, turn.before
    expired = _find_expiry(turn, name)
    if expired is not None and not turn.dry_run:
        registry_gc.drop_tags(tx, org, name, expired)
    graph = registry_gc.list_graph(tx, org, name)
    pins = registry_gc.list_pins(tx, org, name)
    roots = {
        *pins,
        *registry_gc.list_young_builds(tx, org, name, before),
        *registry_gc.list_tagged(tx, org, name, expired),
        *(row.digest for row in graph if row.created_at >= before),
    }
    alive = find_reachable(graph, roots)
    dead = [row.digest for row in graph if row.digest not in alive]
    links = registry_gc.list_links(tx, org, name)
    lost = {row.digest for row in links if row.digest not in alive and row.linked_at < before}
    turn.manifests += len(dead)
    turn.pinned += len(find_reachable(graph, pins))
    turn.unlinked[name] = lost
    if not turn.dry_run:
        sizes = registry_gc.drop_manifests(tx, org, name, dead)
        quotas.release(tx, org, Stored.REGISTRY, sum(sizes), len(sizes))
        registry_gc.drop_links(tx, org, name, lost)


def _find_expiry(turn: _Round, name: str) -> datetime | None:
    """Return when a tag of a repository had to be set to be kept; None if all are kept."""
    if not is_cache(name):
        return None
    return min(turn.before, turn.deps.clock.now() - CACHE_AGE)


def _collect_blobs(tx: Tx, turn: _Round) -> tuple[int, int, list[str]]:
    """Delete blobs that no repository has any more; return their number, size and keys."""
    turn.hold(tx)
    sizes: dict[str, tuple[int, str]] = {}
    kept: set[str] = set()
    for row in registry_gc.list_blobs(tx, turn.org, turn.before):
        sizes[row.digest] = (row.size, row.blob)
        if row.repository is None:
            continue
        if not (turn.dry_run and row.digest in turn.unlinked.get(row.repository, ())):
            kept.add(row.digest)
    gone = {digest: facts for digest, facts in sizes.items() if digest not in kept}
    if not turn.dry_run:
        dropped = registry_gc.drop_blobs(tx, turn.org, gone)
        quotas.release(tx, turn.org, Stored.REGISTRY, sum(dropped), len(dropped))
    return len(gone), sum(size for size, _ in gone.values()), [key for _, key in gone.values()]


def _collect_uploads(tx: Tx, turn: _Round, age: timedelta) -> tuple[int, list[str]]:
    """Delete abandoned uploads; return their number and the keys of their pieces."""
    before = turn.deps.clock.now() - age
    if turn.dry_run:
        rows = registry_gc.list_uploads(tx, turn.org, before)
    else:
        rows = registry_gc.drop_uploads(tx, turn.org, before)
        quotas.release(tx, turn.org, Stored.REGISTRY, sum(row.reserved for row in rows))
        quotas.release(tx, turn.org, Stored.UPLOADS, 0, len(rows))
    return len(rows), [part.key for row in rows for part in row.parts]


async def _find_orphans(turn: _Round) -> list[str]:
    """Return keys without a row: a server died after storing the bytes and before the row."""
    # In this order: what is noted between the two looks is young, and the young ones stay.
    keys = await turn.deps.blobs.list_keys(f"{FOLDER}/{turn.org}")
    used = await turn.deps.db.read(lambda tx: registry_gc.list_used_keys(tx, turn.org))
    before = turn.deps.clock.now() - _ORPHAN_AGE
    orphans = []
    for key in keys:
        made = read_moment(key.rpartition("/")[2])
        if key not in used and made is not None and made < before:
            orphans.append(key)
    return orphans
