"""Queries for how runners authenticate: enrolments, nonces, access tokens and their generations."""

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import bindparam, delete, insert, select, update

from exclave.domain.identity import OrgId, QueueId, QueueKind, RunnerId, RunnerIdentity
from exclave.domain.runners import UNKNOWN_GENERATION, Enrolment, RunnerState
from exclave.storage.engine.database import Tx
from exclave.storage.engine.statements import Prepared
from exclave.storage.tables.runners import enrolments, runner_nonces, runner_tokens, runners

_NEVER_PAST = 2**31 - 1
"""Generation of used nonces: they stay when those of past generations go."""


def add_enrolment(
    tx: Tx,
    org: OrgId,
    queue: QueueId,
    *,
    enrolment: str,
    hashed: str,
    by: str,
    parent: str | None,
    expires_at: datetime,
) -> None:
    """Store a one-time token by its hash, and the API token that asked for it."""
    row = {
        "org_id": org,
        "id": enrolment,
        "queue_id": queue,
        "hash": hashed,
        "created_by": by,
        "parent_id": parent,
    }
    tx.run(insert(enrolments).values(**row, created_at=tx.now, expires_at=expires_at))


def find_enrolment(tx: Tx, hashed: str, *, lock: bool = True) -> Enrolment | None:
    """Find an enrolment by its token."""
    columns = (enrolments.c[name] for name in Enrolment._fields)
    query = select(*columns).where(enrolments.c.hash == hashed)
    return tx.first(query.with_for_update() if lock else query, Enrolment)


def use_enrolment(tx: Tx, org: OrgId, enrolment: str, runner: RunnerId | None) -> None:
    """Spend a one-time token; without a runner it opened something else."""
    mine = (enrolments.c.org_id == org, enrolments.c.id == enrolment)
    tx.run(update(enrolments).where(*mine).values(used_at=tx.now, runner_id=runner))


def add_nonce(
    tx: Tx, org: OrgId, runner: RunnerId, nonce: str, *, generation: int, expires_at: datetime
) -> None:
    """Store a nonce to be signed together with a generation."""
    row = {"org_id": org, "nonce": nonce, "runner_id": runner, "generation": generation}
    tx.insert_each(runner_nonces, [{**row, "expires_at": expires_at}])


_NONCES = (
    runner_nonces.c.org_id == bindparam("org"),
    runner_nonces.c.runner_id == bindparam("runner"),
)
_USE_NONCE = Prepared(
    delete(runner_nonces)
    .where(*_NONCES, runner_nonces.c.nonce == bindparam("nonce"))
    .where(runner_nonces.c.expires_at > bindparam("now"))
)
_END_NONCES = Prepared(
    delete(runner_nonces)
    .where(*_NONCES)
    .where(
        runner_nonces.c.generation.is_(None)
        | (runner_nonces.c.generation < bindparam("at_generation"))
    )
)
_CONFIRM = Prepared(
    update(runners)
    .where(runners.c.org_id == bindparam("org"), runners.c.id == bindparam("runner"))
    .where(runners.c.generation == bindparam("at_generation"))
    .values(generation_used=True)
)


def use_nonce(tx: Tx, org: OrgId, runner: RunnerId, nonce: str) -> bool:
    """Spend a nonce; return whether it was given to this runner and still fresh."""
    return tx.count(_USE_NONCE, org=org, runner=runner, nonce=nonce, now=tx.now) == 1


def mark_used(tx: Tx, org: OrgId, runner: RunnerId, nonce: str, *, expires_at: datetime) -> bool:
    """Store a nonce that was spent just now; false if it was spent before."""
    row = {"org_id": org, "nonce": nonce, "runner_id": runner, "expires_at": expires_at}
    fresh = tx.insert_missing(runner_nonces).values(**row, generation=_NEVER_PAST)
    return tx.first(fresh.returning(runner_nonces.c.nonce)) is not None


def set_generation(tx: Tx, org: OrgId, runner: RunnerId, generation: int) -> None:
    """Store a new generation of a runner's tokens, which nobody has used yet."""
    fresh = {"generation": generation, "generation_used": False}
    tx.update_each(runners, [{"org_id": org, "id": runner, **fresh}])


def add_access_token(
    tx: Tx, org: OrgId, runner: RunnerId, *, hashed: str, generation: int, expires_at: datetime
) -> None:
    """Store an access token by its hash."""
    row = {"org_id": org, "hash": hashed, "runner_id": runner, "generation": generation}
    tx.insert_each(runner_tokens, [{**row, "expires_at": expires_at}])


class _IdentityRow(NamedTuple):
    org_id: OrgId
    id: RunnerId
    queue_id: QueueId
    kind: QueueKind
    name: str
    generation_used: bool
    token_generation: int


_IDENTITY = Prepared(
    select(
        runners.c.org_id,
        runners.c.id,
        runners.c.queue_id,
        runners.c.kind,
        runners.c.name,
        runners.c.generation_used,
        runner_tokens.c.generation.label("token_generation"),
    )
    .join(
        runners,
        (runners.c.org_id == runner_tokens.c.org_id) & (runners.c.id == runner_tokens.c.runner_id),
    )
    .where(runner_tokens.c.hash == bindparam("hash"))
    .where(runner_tokens.c.expires_at > bindparam("now"))
    .where(runners.c.state == RunnerState.ACTIVE),
    _IdentityRow,
)


def find_identity(tx: Tx, hashed: str) -> RunnerIdentity | None:
    """Find whom an access token speaks for, and whether its generation was used before."""
    row = tx.first(_IDENTITY, hash=hashed, now=tx.now)
    if row is None:
        return None
    fresh = None if row.generation_used else row.token_generation
    return RunnerIdentity(row.org_id, row.id, row.queue_id, row.kind, row.name, fresh)


def confirm_generation(tx: Tx, org: OrgId, runner: RunnerId, generation: int) -> None:
    """Store that the newest generation arrived: an older one now means a copied key.

    The nonces for older ones end with it, so that a late copy of the runner's own request betrays
    nobody.
    """
    if tx.count(_CONFIRM, org=org, runner=runner, at_generation=generation):
        tx.count(_END_NONCES, org=org, runner=runner, at_generation=generation)


def drop_access_tokens(tx: Tx, org: OrgId, runner: RunnerId) -> None:
    """Make all access tokens of a runner void at once."""
    where = (runner_tokens.c.org_id == org, runner_tokens.c.runner_id == runner)
    tx.run(delete(runner_tokens).where(*where))


_DROP_NONCES, _DROP_TOKENS = (
    Prepared(delete(table).where(table.c.expires_at <= bindparam("now")))
    for table in (runner_nonces, runner_tokens)
)


def drop_expired(tx: Tx) -> None:
    """Delete expired nonces and access tokens of all orgs."""
    tx.count(_DROP_NONCES, now=tx.now)
    tx.count(_DROP_TOKENS, now=tx.now)


def forget_generations(tx: Tx) -> None:
    """Void all access tokens of all orgs, and let each runner say which generation it is at."""
    tx.run(update(runners).values(generation=UNKNOWN_GENERATION, generation_used=True))
    tx.run(delete(runner_tokens))
