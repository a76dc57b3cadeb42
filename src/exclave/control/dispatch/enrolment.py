"""Enrol runners, and issue short-lived access tokens to holders of a runner's key."""

from collections.abc import Sequence
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
from exclave.domain.identity import OrgId, QueueKind, RunnerId
from exclave.domain.jobs import JobKind
from exclave.storage import queues, runners
from exclave.storage.engine.database import AnyRow, Tx
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
        row = runners.find_enrolment(tx, hash_token(request.token))
        if row is None or (row.used_at is None and row.expires_at <= tx.now):
            raise _unknown_token()
        if row.used_at is not None:
            return _enrol_again(tx, deps, row, request)
        runner = RunnerId(deps.ids.new("run"))
        queue = queues.find_queue(tx, row.org_id, row.queue_id)
        kind = queue.kind if queue is not None else ""
        runners.add_runner(
            tx,
            row.org_id,
            runner,
            {
                "queue_id": row.queue_id,
                "kind": kind,
                "name": request.name,
                "public_key": request.public_key,
                "version": request.version,
                "protocol": request.protocol,
                "capabilities": _list_allowed(kind, request.capabilities),
            },
        )
        runners.use_enrolment(tx, row.org_id, row.id, runner)
        record(tx, deps, OrgId(row.org_id), row.created_by, "runner_enrolled", runner)
        return _welcome(tx, deps, row.org_id, runner)

    return await deps.db.write(enrol)


async def issue_nonce(deps: Deps, runner: RunnerId) -> NonceReply:
    """Return a nonce to sign. An unknown runner gets one too, so that it learns nothing."""
    row = await deps.db.read(lambda tx: runners.find_runner_anywhere(tx, runner, lock=False))
    generation = runners.UNKNOWN_GENERATION if row is None else row.generation
    return NonceReply(nonce=nonces.make_nonce(deps, runner, generation))


async def issue_token(deps: Deps, request: AskToken) -> TokenReply:
    """Issue an access token to the holder of the key; an old generation reveals a copied key."""

    def give(tx: Tx) -> TokenReply | Unauthenticated:
        row = _prove(tx, deps, request)
        if not _is_expected(row, request.generation):
            revoke_identity(tx, row, runners.LOCKED, _CLONED)
            record(tx, deps, OrgId(row.org_id), row.name, "runner_locked", row.id, reason=_CLONED)
            return RunnerLocked(_CLONED)
        return _renew_token(tx, deps, row, request.generation + 1)

    patient = request.runner_id in deps.parked_polls.idle and deps.parked_polls.may_wait(
        deps.timings
    )
    return await deps.db.write(give, patient=patient)


async def list_server_keys(deps: Deps) -> ServerKeys:
    """Return the chain of the control plane's public signing keys."""
    return ServerKeys(keys=await deps.db.read(deps.keys.list_public))


def _make_nonce(deps: Deps) -> str:
    return deps.ids.token("non")[4:]


def _prove(tx: Tx, deps: Deps, request: AskToken) -> AnyRow:
    refused = Unauthenticated("the runner is unknown, or its signature or nonce is wrong")
    row = runners.find_runner_anywhere(tx, RunnerId(request.runner_id))
    if row is None:
        raise refused
    message = token_message(request.runner_id, request.nonce, request.generation)
    if not verify_signature(row.public_key, message, request.signature):
        raise refused
    if not _spend_nonce(tx, deps, row, request.nonce):
        raise refused
    if row.state == runners.LOCKED:
        raise RunnerLocked(f"the runner is locked: {row.state_reason}")
    if row.state != runners.ACTIVE:
        raise RunnerRevoked(f"the runner was revoked: {row.state_reason}")
    return row


def _spend_nonce(tx: Tx, deps: Deps, row: AnyRow, nonce: str) -> bool:
    """Spend a nonce; return False if it is another runner's, expired, used or superseded.

    Those of a past generation end when a newer one is confirmed: a late copy of the runner's own
    request must not look like a copied key.
    """
    if not nonces.is_signed(nonce):
        return runners.use_nonce(tx, row.org_id, row.id, nonce)
    alive = (row.generation,) if row.generation_used else (row.generation, row.generation - 1)
    if not nonces.is_genuine(deps, nonce, row.id, alive, tx.now):
        return False
    return runners.mark_used(tx, row.org_id, row.id, nonce, expires_at=tx.now + nonces.KEPT)


def _is_expected(row: AnyRow, generation: int) -> bool:
    """Accept the newest generation, or the one before while nobody has used the newest.

    After a restore from a backup nobody here knows the newest: the first one presented is it.
    """
    behind = generation == row.generation - 1 and not row.generation_used
    return bool(
        generation == row.generation or behind or row.generation == runners.UNKNOWN_GENERATION
    )


def _renew_token(tx: Tx, deps: Deps, row: AnyRow, generation: int) -> TokenReply:
    secret, nonce = deps.ids.token(ACCESS_TOKEN), _make_nonce(deps)
    life = deps.timings.access_token_s
    runners.update_runner(
        tx, row.org_id, row.id, {"generation": generation, "generation_used": False}
    )
    runners.add_access_token(
        tx,
        row.org_id,
        row.id,
        hashed=hash_token(secret),
        generation=generation,
        expires_at=tx.now + timedelta(seconds=life),
    )
    runners.add_nonce(
        tx,
        row.org_id,
        row.id,
        nonce,
        generation=generation,
        expires_at=tx.now + timedelta(seconds=_NEXT_NONCE_S),
    )
    return TokenReply(
        access_token=secret,
        expires_in_s=life,
        generation=generation,
        next_nonce=nonce,
        timings=_timings(deps),
    )


def _enrol_again(
    tx: Tx, deps: Deps, enrolment: AnyRow, request: Enrol
) -> Enrolled | Unauthenticated:
    row = runners.find_runner(tx, enrolment.org_id, enrolment.runner_id, lock=True)
    if row is not None and row.public_key == request.public_key and row.state == runners.ACTIVE:
        return _welcome(tx, deps, row.org_id, row.id)
    if enrolment.expires_at <= tx.now:
        _raise_alarm(tx, deps, row)
        return _unknown_token()
    why = "the one-time enrolment token was used twice"
    if row is not None and row.state == runners.ACTIVE:
        revoke_identity(tx, row, runners.REVOKED, why)
        record(tx, deps, OrgId(row.org_id), row.name, "runner_revoked", row.id, reason=why)
    return Unauthenticated(
        why,
        hint=(
            "It may have leaked, or its script ran in two folders. Ask for a new one, and use it"
            " where the first one was: what is there stays."
        ),
    )


def _raise_alarm(tx: Tx, deps: Deps, row: AnyRow | None) -> None:
    """Record that a runner's expired token was tried, at most once in `_ALARM_EVERY`.

    Anybody who holds the old token can repeat this; more rows would tell nothing more.
    """
    if row is None or row.state != runners.ACTIVE:
        return
    if row.alarm_at is not None and tx.now - row.alarm_at < _ALARM_EVERY:
        return
    runners.update_runner(tx, row.org_id, row.id, {"alarm": _TRIED_LATE, "alarm_at": tx.now})
    record(tx, deps, OrgId(row.org_id), row.name, "runner_alarm", row.id, reason=_TRIED_LATE)


def _unknown_token() -> Unauthenticated:
    return Unauthenticated("the enrolment token is unknown or expired", hint="Ask for a new one.")


def _list_allowed(queue: str, kinds: Sequence[JobKind]) -> list[str]:
    """Return the capabilities of a runner that its queue allows."""
    return [str(kind) for kind in kinds if queue and kind in KINDS[QueueKind(queue)]]


def _welcome(tx: Tx, deps: Deps, org: str, runner: RunnerId) -> Enrolled:
    row = runners.find_runner(tx, OrgId(org), runner)
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
