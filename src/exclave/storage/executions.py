"""Queries for executions. Whatever a runner writes is fenced in the statement that writes it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Boolean, ColumnElement, Integer, bindparam, exists, select, update

from exclave.base.json_values import JsonObject
from exclave.domain.executions import Execution, NewExecution, OpenExecution, ResultReceipt
from exclave.domain.identity import OrgId, RunnerId
from exclave.domain.jobs import ExecutionId, ExecutionState, JobId, Reason, Silence
from exclave.domain.runners import RunnerState
from exclave.storage.engine.database import Tx
from exclave.storage.engine.statements import Deferred, Prepared
from exclave.storage.tables.runners import runners
from exclave.storage.tables.work import execution_lanes, executions, jobs, lanes

PAGE = 500
"""How many executions of all orgs are listed at a time."""

Held = tuple[ExecutionId, int]
"""An execution and the epoch under which its runner believes to hold it."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What an execution must still be when it is ended.

    Whoever ends an execution has read it before, and anything may have been committed since. So
    the statement that ends it checks this again.
    """

    states: tuple[ExecutionState, ...]
    silent_since: datetime | None = None
    """The last renewal must be older than this."""


UNSTARTED = Expected((ExecutionState.OFFERED,))
STARTED = Expected((ExecutionState.RUNNING,))
OPEN = Expected((ExecutionState.OFFERED, ExecutionState.RUNNING))


def silent_since(moment: datetime) -> Expected:
    """Expect an execution that runs and was not renewed since this moment."""
    return Expected((ExecutionState.RUNNING,), moment)


def add_executions(tx: Tx, new: Sequence[NewExecution]) -> None:
    """Record offers and the lanes that they hold."""
    fixed = {
        "state": ExecutionState.OFFERED,
        "boot": 0,
        "start_no": 0,
        "log_bytes": 0,
        "cancel_sent": False,
        "log_merged": False,
        "offered_at": tx.now,
    }
    tx.insert_each(executions, [{**fixed, **_write_execution(offer)} for offer in new])
    tx.insert_each(
        execution_lanes,
        [
            {
                "org_id": offer.org_id,
                "execution_id": offer.id,
                "queue_id": offer.queue_id,
                "lane": lane,
                "epoch": offer.epoch,
            }
            for offer in new
            for lane in offer.lanes
        ],
    )


def _write_execution(offer: NewExecution) -> dict[str, object]:
    return {
        "org_id": offer.org_id,
        "id": offer.id,
        "job_id": offer.job_id,
        "queue_id": offer.queue_id,
        "runner_id": offer.runner_id,
        "mutating": offer.mutating,
        "epoch": offer.epoch,
        "poll_nonce": offer.poll_nonce,
        "envelope": offer.envelope,
    }


_EXECUTION = select(*(executions.c[name] for name in Execution._fields))
_MINE = _EXECUTION.where(
    executions.c.org_id == bindparam("org"), executions.c.id == bindparam("execution")
)
_FIND = Prepared(_MINE, Execution)
_LOCK = Prepared(_MINE.with_for_update(), Execution)
_NOT_ENDED = executions.c.state != ExecutionState.ENDED
"""Said also where another condition implies it: SQLite sees only then that an index fits."""


def find_execution(
    tx: Tx, org: OrgId, execution: ExecutionId, *, lock: bool = False
) -> Execution | None:
    """Find an execution of this org."""
    return tx.first(_LOCK if lock else _FIND, org=org, execution=execution)


def list_of_job(tx: Tx, org: OrgId, job: JobId) -> Sequence[Execution]:
    """List the attempts at a job, oldest first."""
    where = (executions.c.org_id == org, executions.c.job_id == job)
    return tx.all(_EXECUTION.where(*where).order_by(executions.c.epoch), Execution)


_OPEN = Prepared(
    select(
        *(executions.c[name] for name in OpenExecution._fields if name in executions.c),
        jobs.c.cancel_requested_at,
    )
    .join(jobs, (jobs.c.org_id == executions.c.org_id) & (jobs.c.id == executions.c.job_id))
    .where(executions.c.org_id == bindparam("org"))
    .where(executions.c.runner_id == bindparam("runner"))
    .where(_NOT_ENDED),
    OpenExecution,
)


def ask_open(tx: Tx, org: OrgId, runner: RunnerId) -> Deferred[OpenExecution]:
    """Ask what a runner was handed and has not ended, oldest first, with the wish to cancel.

    Sorted here: SQLite would go through the org's whole history for an order.
    """
    asked = tx.select_later(_OPEN, org=org, runner=runner)
    return lambda: sorted(asked(), key=lambda execution: execution.id)


def list_open(tx: Tx, org: OrgId, runner: RunnerId) -> Sequence[OpenExecution]:
    """List what `ask_open` asks for."""
    return ask_open(tx, org, runner)()


def note_cancel_sent(tx: Tx, org: OrgId, sent: Sequence[ExecutionId]) -> None:
    """Store that the runner was told to cancel, so that only one poll says so."""
    where = (executions.c.org_id == org, executions.c.id.in_(sent))
    tx.run(update(executions).where(*where).values(cancel_sent=True))


def find_open_of_job(tx: Tx, org: OrgId, job: JobId) -> Execution | None:
    """Find the execution that holds a job now."""
    where = (executions.c.org_id == org, executions.c.job_id == job)
    return tx.first(_EXECUTION.where(*where, _NOT_ENDED), Execution)


def start(tx: Tx, org: OrgId, runner: RunnerId, held: Held, *, boot: int, no: int) -> JobId | None:
    """Move an offer to running for its runner; None if it is not this runner's to start now.

    It may have been withdrawn, and the runner may have been revoked.
    """
    started = tx.first(_START, **_hold(org, runner, held), now=tx.now, new_boot=boot, no=no)
    return None if started is None else started.job_id


def renew(tx: Tx, org: OrgId, runner: RunnerId, held: Sequence[Held]) -> frozenset[ExecutionId]:
    """Renew what is still the runner's; return which those are."""
    return frozenset(
        execution[0]
        for execution in held
        if tx.count(_RENEW, **_hold(org, runner, execution), now=tx.now)
    )


def end(
    tx: Tx,
    org: OrgId,
    held: Held,
    expected: Expected,
    reason: Reason,
    receipt: ResultReceipt | None = None,
) -> bool:
    """End an execution that is as expected and holds its lanes; return whether this ended it."""
    at = {"org": org, "execution": held[0], "at_epoch": held[1], "now": tx.now}
    at["states"] = list(expected.states)
    known = {
        "new_reason": reason,
        "new_digest": None if receipt is None else receipt.digest,
        "new_log_end": None if receipt is None else receipt.log_end,
        "new_log_sha256": "" if receipt is None else receipt.log_sha256,
    }
    if expected.silent_since is None:
        return tx.count(_END, **at, **known) == 1
    return tx.count(_END_SILENT, **at, **known, silent_since=expected.silent_since) == 1


def keep_late_result(tx: Tx, org: OrgId, execution: ExecutionId, result: JsonObject) -> None:
    """Keep for people what a superseded runner had to say."""
    mine = (executions.c.org_id == org, executions.c.id == execution)
    tx.run(update(executions).where(*mine).values(late_result=result))


def extend_log(tx: Tx, org: OrgId, runner: RunnerId, held: Held, *, offset: int, end: int) -> bool:
    """Move the end of a log from `offset`; false if it is elsewhere or the writer is fenced off.

    A log may still be completed after its execution ended, as long as no newer one has its lanes.
    """
    at = {**_hold(org, runner, held), "offset": offset, "new_end": end}
    return tx.count(_EXTEND_LOG, **at) == 1


def may_write(
    org: OrgId, runner: RunnerId, held: Held, *, lane: str | None = None
) -> ColumnElement[bool]:
    """Return the condition that an execution runs on current lanes, and on a named one if given."""
    mine = (
        select(1)
        .select_from(executions)
        .where(executions.c.org_id == org, executions.c.runner_id == runner)
        .where(executions.c.id == held[0], executions.c.epoch == held[1])
        .where(executions.c.state == ExecutionState.RUNNING, _unfenced())
    )
    if lane is None:
        return exists(mine)
    on_lane = (
        select(1)
        .where(execution_lanes.c.org_id == org, execution_lanes.c.execution_id == held[0])
        .where(execution_lanes.c.lane == lane)
    )
    return exists(mine) & exists(on_lane)


def is_writer(tx: Tx, org: OrgId, runner: RunnerId, held: Held, *, lane: str) -> bool:
    """Return whether a runner's execution may write to what a lane guards."""
    return tx.first(select(1).where(may_write(org, runner, held, lane=lane))) is not None


_STALE_OFFERS = Prepared(
    _EXECUTION.where(_NOT_ENDED, executions.c.state == ExecutionState.OFFERED)
    .where(executions.c.offered_at < bindparam("before"), executions.c.id > bindparam("after"))
    .order_by(executions.c.id)
    .limit(bindparam("most", type_=Integer)),
    Execution,
)
_SILENT = Prepared(
    _EXECUTION.where(_NOT_ENDED, executions.c.state == ExecutionState.RUNNING)
    .where(executions.c.mutating == bindparam("changes", type_=Boolean))
    .where(executions.c.renewed_at >= bindparam("since"))
    .where(executions.c.renewed_at < bindparam("until"))
    .where(executions.c.id > bindparam("after"))
    .order_by(executions.c.id)
    .limit(bindparam("most", type_=Integer)),
    Execution,
)


def list_stale_offers(tx: Tx, before: datetime, after: str = "") -> Sequence[Execution]:
    """List a page of the offers of all orgs that nobody started in time."""
    return tx.all(_STALE_OFFERS, before=before, after=after, most=PAGE)


def list_silent(
    tx: Tx, silence: Silence, *, mutating: bool, after: str = ""
) -> Sequence[Execution]:
    """List a page of the running executions of all orgs that were silent for so long."""
    at = {"since": silence.since, "until": silence.until, "after": after, "most": PAGE}
    return tx.all(_SILENT, changes=mutating, **at)


def list_unended(tx: Tx) -> Sequence[Execution]:
    """List every open execution of all orgs."""
    return tx.all(_EXECUTION.where(_NOT_ENDED).order_by(executions.c.id), Execution)


def _hold(org: OrgId, runner: RunnerId, held: Held) -> dict[str, object]:
    """Return the parameters of `_HELD`."""
    return {"org": org, "runner": runner, "execution": held[0], "at_epoch": held[1]}


def _unfenced() -> ColumnElement[bool]:
    """Return the condition that no lane of the execution was taken, or freed by a person, since."""
    newer = (
        select(1)
        .select_from(execution_lanes)
        .join(
            lanes,
            (lanes.c.org_id == execution_lanes.c.org_id)
            & (lanes.c.queue_id == execution_lanes.c.queue_id)
            & (lanes.c.name == execution_lanes.c.lane),
        )
        .where(execution_lanes.c.org_id == executions.c.org_id)
        .where(execution_lanes.c.execution_id == executions.c.id)
        .where(lanes.c.epoch > execution_lanes.c.epoch)
        .correlate(executions)
    )
    return ~exists(newer)


_CLAIMED = (
    executions.c.org_id == bindparam("org"),
    executions.c.id == bindparam("execution"),
    executions.c.epoch == bindparam("at_epoch"),
)
_HELD = (*_CLAIMED, executions.c.runner_id == bindparam("runner"))

_TRUSTED = exists().where(
    runners.c.org_id == executions.c.org_id,
    runners.c.id == executions.c.runner_id,
    runners.c.state == RunnerState.ACTIVE,
)


class _Started(NamedTuple):
    job_id: JobId


_START = Prepared(
    update(executions)
    .where(*_HELD, executions.c.state == ExecutionState.OFFERED, _unfenced(), _TRUSTED)
    .values(
        state=ExecutionState.RUNNING,
        started_at=bindparam("now"),
        renewed_at=bindparam("now"),
        boot=bindparam("new_boot"),
        start_no=bindparam("no"),
    )
    .returning(executions.c.job_id),
    _Started,
)
_RENEW = Prepared(
    update(executions)
    .where(*_HELD, executions.c.state == ExecutionState.RUNNING, _unfenced())
    .values(renewed_at=bindparam("now"))
)
_ENDING = (
    update(executions)
    .where(*_CLAIMED, executions.c.state.in_(bindparam("states", expanding=True)), _unfenced())
    .values(
        state=ExecutionState.ENDED,
        ended_at=bindparam("now"),
        log_merged=(executions.c.log_bytes == 0) | (executions.c.log_pieces == 1),
        reason=bindparam("new_reason"),
        result_digest=bindparam("new_digest"),
        log_end=bindparam("new_log_end"),
        log_sha256=bindparam("new_log_sha256"),
    )
)
_END = Prepared(_ENDING)
_END_SILENT = Prepared(_ENDING.where(executions.c.renewed_at < bindparam("silent_since")))
_EXTEND_LOG = Prepared(
    update(executions)
    .where(*_HELD, executions.c.log_bytes == bindparam("offset"))
    .where(executions.c.started_at.is_not(None) | (executions.c.state != ExecutionState.ENDED))
    .where(_unfenced())
    .values(
        log_bytes=bindparam("new_end"), log_pieces=executions.c.log_pieces + 1, log_merged=False
    )
)
