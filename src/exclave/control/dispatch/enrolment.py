"""Enrol runners, and issue short-lived access tokens to holders of a runner's key."""

from datetime import timedelta

from exclave.base.digests import hash_token
from exclave.base.errors import Conflict, Unauthenticated
from exclave.control.access import ACCESS_TOKEN
from exclave.control.audit import record
from exclave.control.deps import Deps
from exclave.control.dispatch import nonces
from exclave.control.dispatch.polls import check_protocol
from exclave.control.dispatch.runners import revoke_identity
from exclave.domain.capabilities import KINDS
from exclave.domain.identity import OrgId, RunnerId
from exclave.domain.queues import Queue
from exclave.domain.runners import (
    UNKNOWN_GENERATION,
    Enrolment,
    NewRunner,
    Runner,
    RunnerState,
)
from exclave.storage import queues, runner_access, runners
from exclave.storage.engine.database import Tx
from exclave.wire.attest import EnrolAttested
from exclave.wire.envelope import verify_signature
from exclave.wire.runner import (
    AskToken,
    Enrol,
    Enrolled,
    NonceReply,
    RunnerTimings,
    ServerKeys,
    TokenReply,
    token_message,
)

_NEXT_NONCE_S = 7200.0
"""How long a nonce for the next token lives: longer than any poll, after which it is needed."""
_ALARM_EVERY = timedelta(hours=1)
_TRIED_LATE = "somebody tried its expired enrolment token with another key"
_CLONED = "two holders of one key: the identity may have been copied"


class RunnerRevoked(Unauthenticated):
    """The runner with this key was revoked."""

    code = "runner_revoked"
    hint = "Enrol again with a new token if this runner is to go on."


class RunnerLocked(Unauthenticated):
    """Two holders of the same identity were seen, so a copy of its key exists."""

    code = "runner_locked"
    hint = "Find the copy, then enrol this runner again with a new token."


async def enrol_runner(deps: Deps, request: Enrol) -> Enrolled:
    """Exchange a one-time token for an identity bound to the runner's key.

    The same key may repeat the request after a lost reply. Another key with a spent token means
    that the token leaked: within the token's lifetime the runner that it made is revoked. Later the
    token is refused and an alarm is raised: old tokens lie in shell histories and CI logs, and
    whoever finds one must not be able to stop a runner.
    """
    check_protocol(request.protocol)

    def enrol(tx: Tx) -> Enrolled | Unauthenticated:
        enrolment = runner_access.find_enrolment(tx, hash_token(request.token))
        if enrolment is None or (enrolment.used_at is None and enrolment.expires_at <= tx.now):
            raise _unknown_token()
        if enrolment.used_at is not None:
            return _enrol_again(tx, deps, enrolment, request)
        org = enrolment.org_id
        queue = queues.find_queue(tx, org, enrolment.queue_id)
        if queue is None:
            raise _unknown_token()
        runner = make_runner(RunnerId(deps.ids.new("run")), queue, request)
        runners.add_runner(tx, runner)
        runner_access.use_enrolment(tx, org, enrolment.id, runner.id)
        record(tx, deps, org, enrolment.created_by, "runner_enrolled", runner.id)
        return welcome_runner(tx, deps, org, runner.id)

    return await deps.db.write(enrol)


def make_runner(runner: RunnerId, queue: Queue, request: Enrol | EnrolAttested) -> NewRunner:
    """Return the runner of a request, with those of its capabilities that its queue allows."""
    return NewRunner(
        org_id=queue.org_id,
        id=runner,
        queue_id=queue.id,
        kind=queue.kind,
        name=request.name,
        public_key=request.public_key,
        version=request.version,
        protocol=request.protocol,
        capabilities=[str(kind) for kind in request.capabilities if kind in KINDS[queue.kind]],
    )


async def issue_nonce(deps: Deps, runner: RunnerId) -> NonceReply:
    """Return a nonce to sign. An unknown runner gets one too, so that it learns nothing."""
    row = await deps.db.read(lambda tx: runners.find_runner_anywhere(tx, runner, lock=False))
    generation = UNKNOWN_GENERATION if row is None else row.generation
    return NonceReply(nonce=nonces.make_nonce(deps, runner, generation))


async def issue_token(deps: Deps, request: AskToken) -> TokenReply:
    """Issue an access token to the holder of the key; an old generation reveals a copied key."""

    def give(tx: Tx) -> TokenReply | Unauthenticated:
        runner = _prove(tx, deps, request)
        if not _is_expected(runner, request.generation):
            revoke_identity(tx, runner, RunnerState.LOCKED, _CLONED)
            record(tx, deps, runner.org_id, runner.name, "runner_locked", runner.id, reason=_CLONED)
            return RunnerLocked(_CLONED)
        return _renew_token(tx, deps, runner, request.generation + 1)

    patient = request.runner_id in deps.parked_polls.idle and deps.parked_polls.may_wait(
        deps.timings
    )
    return await deps.db.write(give, patient=patient)


async def list_server_keys(deps: Deps) -> ServerKeys:
    """Return the chain of the control plane's public signing keys."""
    return ServerKeys(keys=await deps.db.read(deps.keys.list_public))


def _make_nonce(deps: Deps) -> str:
    return deps.ids.token("non")[4:]


def _prove(tx: Tx, deps: Deps, request: AskToken) -> Runner:
    refused = Unauthenticated("the runner is unknown, or its signature or nonce is wrong")
    runner = runners.find_runner_anywhere(tx, RunnerId(request.runner_id))
    if runner is None:
        raise refused
    message = token_message(request.runner_id, request.nonce, request.generation)
    if not verify_signature(runner.public_key, message, request.signature):
        raise refused
    if not _spend_nonce(tx, deps, runner, request.nonce):
        raise refused
    match runner.state:
        case RunnerState.ACTIVE:
            return runner
        case RunnerState.LOCKED:
            raise RunnerLocked(f"the runner is locked: {runner.state_reason}")
        case RunnerState.REVOKED:
            raise RunnerRevoked(f"the runner was revoked: {runner.state_reason}")


def _spend_nonce(tx: Tx, deps: Deps, runner: Runner, nonce: str) -> bool:
    """Spend a nonce; return False if it is another runner's, expired, used or superseded.

    Those of a past generation end when a newer one is confirmed: a late copy of the runner's own
    request must not look like a copied key.
    """
    org, newest = runner.org_id, runner.generation
    if not nonces.is_signed(nonce):
        return runner_access.use_nonce(tx, org, runner.id, nonce)
    alive = (newest,) if runner.generation_used else (newest, newest - 1)
    if not nonces.is_genuine(deps, nonce, runner.id, alive, tx.now):
        return False
    return runner_access.mark_used(tx, org, runner.id, nonce, expires_at=tx.now + nonces.KEPT)


def _is_expected(runner: Runner, generation: int) -> bool:
    """Accept the newest generation, or the one before while nobody has used the newest.

    After a restore from a backup nobody here knows the newest: the first one presented is it.
    """
    behind = generation == runner.generation - 1 and not runner.generation_used
    return behind or runner.generation in {generation, UNKNOWN_GENERATION}


def _renew_token(tx: Tx, deps: Deps, runner: Runner, generation: int) -> TokenReply:
    secret, nonce = deps.ids.token(ACCESS_TOKEN), _make_nonce(deps)
    lifetime_s = deps.timings.access_token_s
    runner_access.set_generation(tx, runner.org_id, runner.id, generation)
    runner_access.add_access_token(
        tx,
        runner.org_id,
        runner.id,
        hashed=hash_token(secret),
        generation=generation,
        expires_at=tx.now + timedelta(seconds=lifetime_s),
    )
    runner_access.add_nonce(
        tx,
        runner.org_id,
        runner.id,
        nonce,
        generation=generation,
        expires_at=tx.now + timedelta(seconds=_NEXT_NONCE_S),
    )
    return TokenReply(
        access_token=secret,
        expires_in_s=lifetime_s,
        generation=generation,
        next_nonce=nonce,
        timings=_timings(deps),
    )


def _enrol_again(
    tx: Tx, deps: Deps, enrolment: Enrolment, request: Enrol
) -> Enrolled | Unauthenticated:
    runner = _find_enrolled(tx, enrolment)
    if runner is not None and runner.public_key == request.public_key:
        return welcome_runner(tx, deps, runner.org_id, runner.id)
    if enrolment.expires_at <= tx.now:
        _raise_alarm(tx, deps, runner)
        return _unknown_token()
    why = "the one-time enrolment token was used twice"
    if runner is not None:
        revoke_identity(tx, runner, RunnerState.REVOKED, why)
        record(tx, deps, runner.org_id, runner.name, "runner_revoked", runner.id, reason=why)
    return Unauthenticated(
        why,
        hint=(
            "It may have leaked, or its script ran in two folders. Ask for a new one, and use it"
            " where the first one was: what is there stays."
        ),
    )


def _find_enrolled(tx: Tx, enrolment: Enrolment) -> Runner | None:
    """Return the runner that has used an enrolment, locked, as long as it is active."""
    if enrolment.runner_id is None:
        return None
    runner = runners.find_runner(tx, enrolment.org_id, enrolment.runner_id, lock=True)
    return runner if runner is not None and runner.state is RunnerState.ACTIVE else None


def _raise_alarm(tx: Tx, deps: Deps, runner: Runner | None) -> None:
    """Record that a runner's expired token was tried, at most once in `_ALARM_EVERY`.

    Anybody who holds the old token can repeat this; more rows would tell nothing more.
    """
    if runner is None:
        return
    if runner.alarm_at is not None and tx.now - runner.alarm_at < _ALARM_EVERY:
        return
    runners.set_alarm(tx, runner.org_id, runner.id, _TRIED_LATE)
    record(tx, deps, runner.org_id, runner.name, "runner_alarm", runner.id, reason=_TRIED_LATE)


def _unknown_token() -> Unauthenticated:
    return Unauthenticated("the enrolment token is unknown or expired", hint="Ask for a new one.")


def welcome_runner(tx: Tx, deps: Deps, org: OrgId, runner: RunnerId) -> Enrolled:
    """Return the identity of a runner, and the keys to pin."""
    row = runners.find_runner(tx, org, runner)
    if row is None:
        raise Conflict("the runner is gone")
    return Enrolled(
        runner_id=runner,
        org_id=org,
        queue_id=row.queue_id,
        kind=row.kind,
        generation=row.generation,
        keys=deps.keys.list_public(tx),
        timings=_timings(deps),
    )


def _timings(deps: Deps) -> RunnerTimings:
    return RunnerTimings.model_validate(deps.timings, from_attributes=True)
