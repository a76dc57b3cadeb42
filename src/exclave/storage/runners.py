"""Queries for runners: who there is, and the polls and renewals by which they show up."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import bindparam, case, func, insert, select, update

from exclave.base.json_values import JsonObject
from exclave.domain.identity import OrgId, QueueId, QueueKind, RunnerId
from exclave.domain.jobs import ExecutionState
from exclave.domain.runners import NewRunner, Runner, RunnerState
from exclave.storage.engine.database import Tx
from exclave.storage.engine.statements import Deferred, Prepared
from exclave.storage.tables.runners import runners
from exclave.storage.tables.work import executions


def add_runner(tx: Tx, new: NewRunner) -> None:
    """Create a runner, which is active and has its first generation of tokens."""
    fixed = {
        "state": RunnerState.ACTIVE,
        "generation": 1,
        "generation_used": True,
        "stats": {},
        "created_at": tx.now,
    }
    tx.run(insert(runners).values({**new._asdict(), **fixed}))


_RUNNER = select(*(runners.c[name] for name in Runner._fields))
_MY_ID = (runners.c.org_id == bindparam("org"), runners.c.id == bindparam("runner"))
_FIND = Prepared(_RUNNER.where(*_MY_ID), Runner)
_LOCK = Prepared(_RUNNER.where(*_MY_ID).with_for_update(), Runner)


def find_runner(tx: Tx, org: OrgId, runner: RunnerId, *, lock: bool = False) -> Runner | None:
    """Find a runner of this org."""
    return tx.first(_LOCK if lock else _FIND, org=org, runner=runner)


class Turn(NamedTuple):
    """A runner's state and the numbers of its newest poll."""

    state: RunnerState
    boot: int
    poll_no: int
    poll_free: int | None
    """How many jobs the poll still takes; 0 if it was answered."""


class WaitingPoll(NamedTuple):
    """A runner whose newest poll waits, on whichever server."""

    org_id: OrgId
    id: RunnerId
    queue_id: QueueId
    kind: QueueKind
    name: str
    boot: int
    poll_no: int
    poll_nonce: str
    poll_free: int
    capabilities: Sequence[str]
    protocol: str


_TURN = Prepared(
    select(*(runners.c[name] for name in Turn._fields)).where(*_MY_ID).with_for_update(), Turn
)
_ANY_TURN = Prepared(
    select(*(runners.c[name] for name in WaitingPoll._fields))
    .where(runners.c.org_id == bindparam("org"), runners.c.queue_id == bindparam("queue"))
    .where(runners.c.state == RunnerState.ACTIVE, runners.c.poll_free > 0)
    .where(runners.c.due_at > bindparam("late_since"))
    .order_by(runners.c.due_at.desc())
    .limit(1)
    .with_for_update(skip_locked=True),
    WaitingPoll,
)
_ANSWERED = Prepared(update(runners).where(*_MY_ID).values(poll_free=0))
_SEEN = {"seen_at": bindparam("now"), "due_at": bindparam("due"), "cause": ""}
_ANEW = runners.c.boot < bindparam("new_boot")
"""This is the first sign of a new boot, whose request numbers start over."""
_POLL = (
    update(runners)
    .where(*_MY_ID, runners.c.state == RunnerState.ACTIVE)
    .where(
        _ANEW | ((runners.c.boot == bindparam("new_boot")) & (runners.c.poll_no <= bindparam("no")))
    )
    .values(
        boot=bindparam("new_boot"),
        poll_no=bindparam("no"),
        poll_nonce=bindparam("nonce"),
        poll_free=bindparam("free"),
        renew_no=case((_ANEW, 0), else_=runners.c.renew_no),
        version=bindparam("new_version"),
        protocol=bindparam("new_protocol"),
        capabilities=bindparam("new_capabilities"),
        **_SEEN,
    )
    .returning(runners.c.id)
)


class NotedPoll(NamedTuple):
    """The runner of a poll that was recorded."""

    id: RunnerId


_NOTE_BARE_POLL = Prepared(_POLL, NotedPoll)
_NOTE_POLL = Prepared(_POLL.values(stats=bindparam("new_stats")), NotedPoll)
_NOTE_RENEWAL = Prepared(
    update(runners)
    .where(*_MY_ID, runners.c.state == RunnerState.ACTIVE)
    .where(
        _ANEW | ((runners.c.boot == bindparam("new_boot")) & (runners.c.renew_no < bindparam("no")))
    )
    .values(
        boot=bindparam("new_boot"),
        renew_no=bindparam("no"),
        poll_no=case((_ANEW, 0), else_=runners.c.poll_no),
        stats=bindparam("new_stats"),
        **_SEEN,
    )
)


def ask_turn(tx: Tx, org: OrgId, runner: RunnerId) -> Deferred[Turn]:
    """Ask for a runner's state and the numbers of its newest poll, and lock it."""
    return tx.select_later(_TURN, org=org, runner=runner)


def ask_any_turn(tx: Tx, org: OrgId, queue: QueueId, late_since: datetime) -> Deferred[WaitingPoll]:
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
    stats: JsonObject | None,
) -> Deferred[NotedPoll]:
    """Record a poll, unless a newer one was seen or the runner is not active; lock it.

    There is no row if the poll was not recorded. A runner of old sends no stats.
    """
    at = {"new_boot": boot, "no": no, "now": tx.now, "due": due, "nonce": nonce, "free": free}
    report = {"new_version": version, "new_protocol": protocol, "new_capabilities": capabilities}
    if stats is None:
        return tx.select_later(_NOTE_BARE_POLL, org=org, runner=runner, **at, **report)
    return tx.select_later(_NOTE_POLL, org=org, runner=runner, **at, **report, new_stats=stats)


def note_renewal(
    tx: Tx,
    org: OrgId,
    runner: RunnerId,
    *,
    boot: int,
    no: int,
    due: datetime,
    stats: JsonObject,
) -> bool:
    """Record a renewal, unless a newer one was seen or the runner is not active; lock it."""
    at = {"new_boot": boot, "no": no, "now": tx.now, "due": due}
    return tx.count(_NOTE_RENEWAL, org=org, runner=runner, **at, new_stats=stats) == 1


def note_disconnect(
    tx: Tx, org: OrgId, runner: RunnerId, *, due: datetime | None, cause: str
) -> None:
    """Store that the newest poll of a runner no longer waits, and when it is due for that cause.

    If `due` is None, it stays due as it is.
    """
    gone: dict[str, object] = {"poll_free": 0}
    if due is not None:
        gone |= {"due_at": due, "cause": cause}
    tx.update_each(runners, [{"org_id": org, "id": runner, **gone}])


_ANYWHERE = _RUNNER.where(runners.c.id == bindparam("runner"))
_FIND_ANYWHERE = Prepared(_ANYWHERE, Runner)
_LOCK_ANYWHERE = Prepared(_ANYWHERE.with_for_update(), Runner)


def find_runner_anywhere(tx: Tx, runner: RunnerId, *, lock: bool = True) -> Runner | None:
    """Find a runner that has yet to prove who it is."""
    return tx.first(_LOCK_ANYWHERE if lock else _FIND_ANYWHERE, runner=runner)


def set_state(tx: Tx, org: OrgId, runner: RunnerId, state: RunnerState, reason: str) -> None:
    """Store whether a runner may authenticate, and why."""
    state_row = {"org_id": org, "id": runner, "state": state, "state_reason": reason}
    tx.update_each(runners, [state_row])


def set_alarm(tx: Tx, org: OrgId, runner: RunnerId, alarm: str) -> None:
    """Store what an admin should look into; the runner goes on working."""
    tx.update_each(runners, [{"org_id": org, "id": runner, "alarm": alarm, "alarm_at": tx.now}])


def list_runners(
    tx: Tx, org: OrgId, after: str, limit: int, queue: QueueId | None = None
) -> Sequence[Runner]:
    """List runners, oldest first."""
    where = [runners.c.org_id == org, runners.c.id > after]
    if queue is not None:
        where.append(runners.c.queue_id == queue)
    return tx.all(_RUNNER.where(*where).order_by(runners.c.id).limit(limit), Runner)


def list_creation_times(tx: Tx, org: OrgId, queue: QueueId, limit: int) -> Sequence[datetime]:
    """List when the runners of a queue enrolled, newest first."""
    mine = (runners.c.org_id == org, runners.c.queue_id == queue)
    query = select(runners.c.created_at).where(*mine).order_by(runners.c.id.desc()).limit(limit)
    return [row.created_at for row in tx.all(query)]


def count_running(tx: Tx, org: OrgId, wanted: Sequence[RunnerId]) -> dict[RunnerId, int]:
    """Count the executions that each of these runners is at; the idle ones are left out."""
    where = (executions.c.org_id == org, executions.c.runner_id.in_(wanted))
    counted = (
        select(executions.c.runner_id, func.count().label("total"))
        .where(*where, executions.c.state == ExecutionState.RUNNING)
        .group_by(executions.c.runner_id)
    )
    return {row.runner_id: row.total for row in tx.all(counted, _RunningCount)}


class _RunningCount(NamedTuple):
    runner_id: RunnerId
    total: int
