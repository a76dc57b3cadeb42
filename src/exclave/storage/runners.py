"""Queries for runners, their enrolment and their short-lived tokens."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, case, delete, func, insert, select, update

from exclave.domain.identity import OrgId, QueueId, QueueKind, RunnerId, RunnerIdentity
from exclave.domain.jobs import ExecutionState
from exclave.storage.engine.database import AnyRow, Tx
from exclave.storage.engine.statements import Deferred, Prepared
from exclave.storage.tables.core import (
    enrolments,
    executions,
    runner_nonces,
    runner_tokens,
    runners,
)

ACTIVE = "active"
REVOKED = "revoked"
LOCKED = "locked"
UNKNOWN_GENERATION = 0
"""After a restore: whatever generation a runner presents first is taken for its newest."""
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


def find_enrolment(tx: Tx, hashed: str) -> AnyRow | None:
    """Find an enrolment by its token and lock it."""
    return tx.first(select(enrolments).where(enrolments.c.hash == hashed).with_for_update())


def use_enrolment(tx: Tx, org: OrgId, enrolment: str, runner: RunnerId) -> None:
    """Spend a one-time token."""
    mine = (enrolments.c.org_id == org, enrolments.c.id == enrolment)
    tx.run(update(enrolments).where(*mine).values(used_at=tx.now, runner_id=runner))


def add_runner(tx: Tx, org: OrgId, runner: RunnerId, values: Mapping[str, Any]) -> None:
    """Create a runner."""
    row = {"state": ACTIVE, "generation": 1, "generation_used": True, "stats": {}, **values}
    tx.run(insert(runners).values(org_id=org, id=runner, created_at=tx.now, **row))


_MINE = select(runners).where(
    runners.c.org_id == bindparam("org"), runners.c.id == bindparam("runner")
)
_FIND = Prepared(_MINE)
_LOCK = Prepared(_MINE.with_for_update())


def find_runner(tx: Tx, org: OrgId, runner: RunnerId, *, lock: bool = False) -> AnyRow | None:
    """Find a runner of this org."""
    return tx.first(_LOCK if lock else _FIND, org=org, runner=runner)


_MY_ID = (runners.c.org_id == bindparam("org"), runners.c.id == bindparam("runner"))
_TURN = Prepared(
    select(runners.c.state, runners.c.boot, runners.c.poll_no, runners.c.poll_free)
    .where(*_MY_ID)
    .with_for_update()
)
_ANY_TURN = Prepared(
    select(
        *(
            runners.c[name]
            for name in (
                "org_id",
                "id",
                "queue_id",
                "kind",
                "name",
                "boot",
                "poll_no",
                "poll_nonce",
                "poll_free",
                "capabilities",
            )
        )
    )
    .where(runners.c.org_id == bindparam("org"), runners.c.queue_id == bindparam("queue"))
    .where(runners.c.state == ACTIVE, runners.c.poll_free > 0)
    .where(runners.c.due_at > bindparam("late_since"))
    .order_by(runners.c.due_at.desc())
    .limit(1)
    .with_for_update(skip_locked=True)
)
_ANSWERED = Prepared(update(runners).where(*_MY_ID).values(poll_free=0))
_SEEN = {"seen_at": bindparam("now"), "due_at": bindparam("due"), "cause": ""}
_ANEW = runners.c.boot < bindparam("new_boot")
"""This is the first sign of a new boot, whose request numbers start over."""
_POLL = (
    update(runners)
    .where(*_MY_ID, runners.c.state == ACTIVE)
    .where(_ANEW | ((runners.c.boot == bindparam("new_boot"))
                    & (runners.c.poll_no <= bindparam("no"))))
    .values(boot=bindparam("new_boot"), poll_no=bindparam("no"),
            poll_nonce=bindparam("nonce"), poll_free=bindparam("free"),
            renew_no=case((_ANEW, 0), else_=runners.c.renew_no),
            version=bindparam("new_version"), protocol=bindparam("new_protocol"),
            capabilities=bindparam("new_capabilities"), **_SEEN)
    .returning(runners.c.id)
)  # fmt: skip
_NOTE_BARE_POLL = Prepared(_POLL)
_NOTE_POLL = Prepared(_POLL.values(stats=bindparam("new_stats")))
_NOTE_RENEWAL = Prepared(
    update(runners)
    .where(*_MY_ID, runners.c.state == ACTIVE)
    .where(_ANEW | ((runners.c.boot == bindparam("new_boot"))
                    & (runners.c.renew_no < bindparam("no"))))
    .values(boot=bindparam("new_boot"), renew_no=bindparam("no"),
            poll_no=case((_ANEW, 0), else_=runners.c.poll_no),
            stats=bindparam("new_stats"), **_SEEN)
)  # fmt: skip


def ask_turn(tx: Tx, org: OrgId, runner: RunnerId) -> Deferred[AnyRow]:
    """Ask for a runner's state and the numbers of its newest poll, and lock it."""
    return tx.select_later(_TURN, org=org, runner=runner)


def ask_any_turn(tx: Tx, org: OrgId, queue: QueueId, late_since: datetime) -> Deferred[AnyRow]:
    """Ask for a runner of a queue whose poll waits, and lock it; one that is up comes first.

    One that is late is taken if it is so since that time at the earliest.
    """
    return tx.select_later(_ANY_TURN, org=org, queue=queue, late_since=late_since)


def note_answered(tx: Tx, org: OrgId, runner: RunnerId) -> None:
    """Store that the newest poll of a runner was answered and no longer waits."""
    tx.execute_later(_ANSWERED, org=org, runner=runner)


def note_poll(
    tx: Tx,
    org: OrgId,
    runner: RunnerId,
    *,
    boot: int,
    no: int,
    nonce: str,
    free: int,
    due: datetime,
    version: str,
    protocol: str,
    capabilities: Sequence[str],
    stats: Mapping[str, Any] | None,
) -> Deferred[AnyRow]:
    """Record a poll, unless a newer one was seen or the runner is not active; lock it.

    Asks for its id; no row if the poll was not recorded. A runner of old sends no stats.
    """
    at = {"new_boot": boot, "no": no, "now": tx.now, "due": due, "nonce": nonce, "free": free}
    told = {"new_version": version, "new_protocol": protocol, "new_capabilities": capabilities}
    if stats is None:
        return tx.select_later(_NOTE_BARE_POLL, org=org, runner=runner, **at, **told)
    return tx.select_later(_NOTE_POLL, org=org, runner=runner, **at, **told, new_stats=stats)


def note_renewal(
    tx: Tx,
    org: OrgId,
    runner: RunnerId,
    *,
    boot: int,
    no: int,
    due: datetime,
    stats: Mapping[str, Any],
) -> bool:
    """Record a renewal, unless a newer one was seen or the runner is not active; lock it."""
    at = {"new_boot": boot, "no": no, "now": tx.now, "due": due}
    return tx.count(_NOTE_RENEWAL, org=org, runner=runner, **at, new_stats=stats) == 1


_ANYWHERE = select(runners).where(runners.c.id == bindparam("runner"))
_FIND_ANYWHERE = Prepared(_ANYWHERE)
_LOCK_ANYWHERE = Prepared(_ANYWHERE.with_for_update())


def find_runner_anywhere(tx: Tx, runner: RunnerId, *, lock: bool = True) -> AnyRow | None:
    """Find a runner that has yet to prove who it is."""
    return tx.first(_LOCK_ANYWHERE if lock else _FIND_ANYWHERE, runner=runner)


def update_runner(tx: Tx, org: OrgId, runner: RunnerId, values: Mapping[str, Any]) -> None:
    """Change a runner."""
    tx.update_each(runners, [{"org_id": org, "id": runner, **values}])


def list_runners(
    tx: Tx, org: OrgId, after: str, limit: int, queue: QueueId | None = None
) -> Sequence[AnyRow]:
    """List runners, oldest first."""
    where = [runners.c.org_id == org, runners.c.id > after]
    if queue is not None:
        where.append(runners.c.queue_id == queue)
    return tx.all(select(runners).where(*where).order_by(runners.c.id).limit(limit))


def count_running(tx: Tx, org: OrgId, wanted: Sequence[str]) -> dict[str, int]:
    """Count the executions that each of these runners is at; the idle ones are left out."""
    where = (executions.c.org_id == org, executions.c.runner_id.in_(wanted))
    counted = (
        select(executions.c.runner_id, func.count())
        .where(*where, executions.c.state == ExecutionState.RUNNING)
        .group_by(executions.c.runner_id)
    )
    return {row[0]: row[1] for row in tx.all(counted)}


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
    .where(runner_nonces.c.generation.is_(None)
           | (runner_nonces.c.generation < bindparam("at_generation")))
)  # fmt: skip
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


def add_access_token(
    tx: Tx, org: OrgId, runner: RunnerId, *, hashed: str, generation: int, expires_at: datetime
) -> None:
    """Store an access token by its hash."""
    row = {"org_id": org, "hash": hashed, "runner_id": runner, "generation": generation}
    tx.insert_each(runner_tokens, [{**row, "expires_at": expires_at}])


_IDENTITY = Prepared(
    select(runners.c.org_id, runners.c.id, runners.c.queue_id, runners.c.kind, runners.c.name,
           runners.c.generation_used, runner_tokens.c.generation.label("token_generation"))
    .join(runners, (runners.c.org_id == runner_tokens.c.org_id)
          & (runners.c.id == runner_tokens.c.runner_id))
    .where(runner_tokens.c.hash == bindparam("hash"))
    .where(runner_tokens.c.expires_at > bindparam("now"))
    .where(runners.c.state == ACTIVE)
)  # fmt: skip


def find_identity(tx: Tx, hashed: str) -> RunnerIdentity | None:
    """Find whom an access token speaks for, and whether its generation was used before."""
    row = tx.first(_IDENTITY, hash=hashed, now=tx.now)
    if row is None:
        return None
    fresh = None if row.generation_used else row.token_generation
    return RunnerIdentity(row.org_id, row.id, row.queue_id, QueueKind(row.kind), row.name, fresh)


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
