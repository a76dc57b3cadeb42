"""Runners in the Control API: enrolment tokens, list, revocation."""

from datetime import datetime, timedelta

from exclave.base.digests import hash_token
from exclave.base.errors import NotFound
from exclave.control.access import ENROLMENT_TOKEN, hold_token, require_on, require_there
from exclave.control.audit import record
from exclave.control.deps import Deps
from exclave.control.dispatch.presence import find_presence
from exclave.control.limits.quotas import check_count
from exclave.control.pagination import clamp, make_page
from exclave.domain.identity import QueueId, Right, RunnerId, User
from exclave.domain.quotas import Counted
from exclave.domain.runners import Runner, RunnerState
from exclave.storage import queues, runner_access, runners
from exclave.storage.engine.database import Tx
from exclave.wire.identity import EnrolmentCreated, RunnerReply
from exclave.wire.model import Page
from exclave.wire.runner import Stats


async def create_enrolment(deps: Deps, user: User, queue: QueueId) -> EnrolmentCreated:
    """Create a one-time token with which one runner joins a queue."""
    await require_there(deps, user, Right.OPERATE, queue)
    secret = deps.ids.token(ENROLMENT_TOKEN)

    def create(tx: Tx) -> EnrolmentCreated:
        if queues.find_queue(tx, user.org, queue) is None:
            raise NotFound("there is no such install or build queue")
        hold_token(tx, user)
        check_count(tx, deps, user.org, Counted.ENROLMENTS)
        enrolment = deps.ids.new("enr")
        expires = tx.now + timedelta(seconds=deps.timings.enrolment_s)
        runner_access.add_enrolment(
            tx,
            user.org,
            queue,
            enrolment=enrolment,
            hashed=hash_token(secret),
            by=user.name,
            parent=user.token,
            expires_at=expires,
        )
        record(tx, deps, user.org, user.name, "enrolment_created", enrolment, queue=queue)
        return EnrolmentCreated(
            id=enrolment,
            queue_id=queue,
            token=secret,
            expires_at=expires,
            runner_url=deps.runner_url,
        )

    return await deps.db.write(create)


async def list_runners(
    deps: Deps, user: User, cursor: str, limit: int, queue: QueueId | None = None
) -> Page[RunnerReply]:
    """List runners with their presence."""
    await require_there(deps, user, Right.READ, queue)
    wanted = clamp(limit)

    def find(tx: Tx) -> Page[RunnerReply]:
        rows = runners.list_runners(tx, user.org, cursor, wanted + 1, queue)
        running = runners.count_running(tx, user.org, [runner.id for runner in rows])
        return make_page(
            rows,
            wanted,
            lambda runner: write_runner(deps, runner, tx.now, running.get(runner.id, 0)),
        )

    return await deps.db.read(find)


async def show_runner(deps: Deps, user: User, runner: RunnerId) -> RunnerReply:
    """Return a runner with its presence."""

    def find(tx: Tx) -> RunnerReply:
        row = runners.find_runner(tx, user.org, runner)
        if row is None:
            raise NotFound("there is no such runner")
        require_on(tx, user, Right.READ, row.queue_id, noun="runner")
        running = runners.count_running(tx, user.org, [runner])
        return write_runner(deps, row, tx.now, running.get(runner, 0))

    return await deps.db.read(find)


async def revoke_runner(deps: Deps, user: User, runner: RunnerId, reason: str) -> RunnerReply:
    """Revoke a runner: all its later requests are refused."""

    def revoke(tx: Tx) -> None:
        row = runners.find_runner(tx, user.org, runner, lock=True)
        if row is None:
            raise NotFound("there is no such runner")
        require_on(tx, user, Right.OPERATE, row.queue_id, noun="runner")
        revoke_identity(tx, row, RunnerState.REVOKED, reason)
        record(tx, deps, user.org, user.name, "runner_revoked", runner, reason=reason)

    await deps.db.write(revoke)
    return await show_runner(deps, user, runner)


def revoke_identity(tx: Tx, runner: Runner, state: RunnerState, reason: str) -> None:
    """Close a runner's identity and void its access tokens."""
    runners.set_state(tx, runner.org_id, runner.id, state, reason)
    runner_access.drop_access_tokens(tx, runner.org_id, runner.id)
    tx.wake(f"queue:{runner.queue_id}")


def write_runner(deps: Deps, runner: Runner, now: datetime, running: int) -> RunnerReply:
    """Return the reply that shows a runner."""
    stats = Stats.model_validate(runner.stats)
    presence = find_presence(deps, runner, now)
    closed = runner.state is not RunnerState.ACTIVE
    return RunnerReply(
        id=runner.id,
        name=runner.name,
        queue_id=runner.queue_id,
        kind=runner.kind,
        state=runner.state,
        presence=presence.state,
        cause=runner.state_reason if closed else presence.cause,
        seen_at=runner.seen_at,
        version=runner.version,
        protocol=runner.protocol,
        capabilities=runner.capabilities,
        stats=stats,
        running=running,
        created_at=runner.created_at,
        alarm=runner.alarm or "",
        alarm_at=runner.alarm_at,
    )
