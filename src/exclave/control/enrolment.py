"""How a runner gets its identity, and its short-lived access tokens against its own key."""

from collections.abc import Sequence
from datetime import timedelta

from exclave.base.digests import hash_token
from exclave.base.errors import Conflict, Unauthenticated
from exclave.control.access import ACCESS_TOKEN
from exclave.control.audit import record
from exclave.control.deps import Deps
from exclave.control.polls import check_protocol
from exclave.control.runners import revoke_identity
from exclave.domain.capabilities import KINDS
from exclave.domain.identity import OrgId, QueueKind, RunnerId
from exclave.domain.jobs import JobKind
from exclave.storage import queues, runners
from exclave.storage.database import AnyRow, Tx
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

_NONCE_S = 60.0
_NEXT_NONCE_S = 7200.0
"""How long a nonce for the next token lives: longer than any poll, after which it is needed."""
_CLONED = "two holders of one key: the identity may have been copied"


class RunnerRevoked(Unauthenticated):
    """The holder of the key is known, and nobody wants it any more."""

    code = "runner_revoked"
    hint = "Enrol again with a new token if this runner is to go on."


class RunnerLocked(Unauthenticated):
    """The identity was presented by two holders."""

    code = "runner_locked"
    hint = "Find the copy, then enrol this runner again with a new token."


async def enrol_runner(deps: Deps, request: Enrol) -> Enrolled:
    """Exchange a one-time token for an identity bound to the runner's key.

    The same key may repeat the request after a lost reply. Another key with a spent token means
    that the token leaked: the runner that it made is revoked.
    """
    check_protocol(request.protocol)

    def enrol(tx: Tx) -> Enrolled | Unauthenticated:
        row = runners.find_enrolment(tx, hash_token(request.token))
        if row is None or (row.used_at is None and row.expires_at <= tx.now):
            raise Unauthenticated(
                "the enrolment token is unknown or expired", hint="Ask for a new one."
            )
        if row.used_at is not None:
            return _enrol_again(tx, deps, row, request)
        runner = RunnerId(deps.ids.new("run"))
        queue = queues.find_queue(tx, row.org_id, row.queue_id)
        kind = queue.kind if queue is not None else ""
        runners.add_runner(tx, row.org_id, runner, {
            "queue_id": row.queue_id, "kind": kind, "name": request.name,
            "public_key": request.public_key, "version": request.version,
            "protocol": request.protocol,
            "capabilities": _list_allowed(kind, request.capabilities),
        })  # fmt: skip
        runners.use_enrolment(tx, row.org_id, row.id, runner)
        record(tx, deps, OrgId(row.org_id), row.created_by, "runner_enrolled", runner)
        return _welcome(tx, deps, row.org_id, runner)

    return await deps.db.write(enrol)


async def give_nonce(deps: Deps, runner: RunnerId) -> NonceReply:
    """Give a nonce to sign; an unknown runner gets one too, and learns nothing from it."""
    nonce = _make_nonce(deps)

    def give(tx: Tx) -> None:
        row = runners.find_runner_anywhere(tx, runner)
        if row is not None:
            runners.add_nonce(
                tx, row.org_id, runner, nonce, generation=row.generation,
                expires_at=tx.now + timedelta(seconds=_NONCE_S),
            )  # fmt: skip

    await deps.db.write(give)
    return NonceReply(nonce=nonce)


async def give_token(deps: Deps, request: AskToken) -> TokenReply:
    """Give an access token to whoever holds the key; an old generation betrays a copied key."""

    def give(tx: Tx) -> TokenReply | Unauthenticated:
        row = _prove(tx, request)
        if not _is_expected(row, request.generation):
            revoke_identity(tx, row, runners.LOCKED, _CLONED)
            record(tx, deps, OrgId(row.org_id), row.name, "runner_locked", row.id, reason=_CLONED)
            return RunnerLocked(_CLONED)
        return _renew_token(tx, deps, row, request.generation + 1)

    patient = request.runner_id in deps.fleet.idle and deps.fleet.may_wait(deps.timings)
    return await deps.db.write(give, patient=patient)


async def list_server_keys(deps: Deps) -> ServerKeys:
    """List the chain of signing keys; public by nature."""
    return ServerKeys(keys=await deps.db.read(deps.keys.list_public))


def _make_nonce(deps: Deps) -> str:
    return deps.ids.token("non")[4:]


def _prove(tx: Tx, request: AskToken) -> AnyRow:
    refused = Unauthenticated("the runner is unknown, or its signature or nonce is wrong")
    row = runners.find_runner_anywhere(tx, RunnerId(request.runner_id))
    if row is None:
        raise refused
    if not runners.use_nonce(tx, row.org_id, row.id, request.nonce):
        raise refused
    message = token_message(request.runner_id, request.nonce, request.generation)
    if not verify_signature(row.public_key, message, request.signature):
        raise refused
    if row.state == runners.LOCKED:
        raise RunnerLocked(f"the runner is locked: {row.state_reason}")
    if row.state != runners.ACTIVE:
        raise RunnerRevoked(f"the runner was revoked: {row.state_reason}")
    return row


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
        tx, row.org_id, row.id, hashed=hash_token(secret), generation=generation,
        expires_at=tx.now + timedelta(seconds=life),
    )  # fmt: skip
    runners.add_nonce(
        tx, row.org_id, row.id, nonce, generation=generation,
        expires_at=tx.now + timedelta(seconds=_NEXT_NONCE_S),
    )  # fmt: skip
    return TokenReply(
        access_token=secret, expires_in_s=life, generation=generation, next_nonce=nonce,
        timings=_timings(deps),
    )  # fmt: skip


def _enrol_again(
    tx: Tx, deps: Deps, enrolment: AnyRow, request: Enrol
) -> Enrolled | Unauthenticated:
    row = runners.find_runner(tx, enrolment.org_id, enrolment.runner_id, lock=True)
    if row is not None and row.public_key == request.public_key and row.state == runners.ACTIVE:
        return _welcome(tx, deps, row.org_id, row.id)
    why = "the one-time enrolment token was used twice"
    if row is not None and row.state == runners.ACTIVE:
        revoke_identity(tx, row, runners.REVOKED, why)
        record(tx, deps, OrgId(row.org_id), row.name, "runner_revoked", row.id, reason=why)
    return Unauthenticated(why, hint=(
        "It may have leaked, or its script ran in two folders. Ask for a new one, and use it where"
        " the first one was: what is there stays."
    ))  # fmt: skip


def _list_allowed(queue: str, kinds: Sequence[JobKind]) -> list[str]:
    """List what a runner of this queue may do of what it can do."""
    return [str(kind) for kind in kinds if queue and kind in KINDS[QueueKind(queue)]]


def _welcome(tx: Tx, deps: Deps, org: str, runner: RunnerId) -> Enrolled:
    row = runners.find_runner(tx, OrgId(org), runner)
    if row is None:
        raise Conflict("the runner is gone")
    return Enrolled(
        runner_id=runner, org_id=org, queue_id=row.queue_id, kind=row.kind,
        generation=row.generation, keys=deps.keys.list_public(tx), timings=_timings(deps),
    )  # fmt: skip


def _timings(deps: Deps) -> RunnerTimings:
    return RunnerTimings.model_validate(deps.timings, from_attributes=True)
