"""Revoking an API token, alone or with everything that was made with it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from exclave.base.errors import NotFound
from exclave.control.access import require
from exclave.control.audit import record
from exclave.control.deps import Deps
from exclave.control.dispatch.runners import revoke_identity
from exclave.domain.identity import OrgId, Right, TokenId, User
from exclave.domain.registry_tokens import RegistryToken
from exclave.domain.runners import RunnerState
from exclave.storage import accounts, credentials
from exclave.storage.credentials import MadeCode, MadeEnrolment, MadeToken
from exclave.storage.engine.database import Tx
from exclave.wire.identity import MadeCredential, MadeKind, MadeList, TokenRevoked

_MOST_NAMED = 200
"""How many things a reply names; it counts all of them."""


@dataclass(frozen=True, slots=True)
class RevokeWish:
    """How far a revocation reaches."""

    cascade: bool = False
    """Also what the token made, and what that made."""
    runners: bool = False
    """Also the runners that joined by its enrolment tokens."""
    dry_run: bool = False


async def revoke_token(
    deps: Deps, user: User, token: TokenId, body: RevokeWish | None = None
) -> TokenRevoked:
    """Revoke an API token at once; return what went with it, and what of it stays valid."""
    require(user, Right.ADMINISTER)
    asked = body or RevokeWish()

    def revoke(tx: Tx) -> TokenRevoked:
        row = accounts.find_token(tx, user.org, token)
        if row is None:
            raise NotFound("there is no such token")
        if not asked.dry_run:
            accounts.revoke_token(tx, user.org, token)
        revoked, stays = _split(tx, user.org, token, asked)
        if not asked.dry_run:
            counts = Counter(str(credential.kind) for credential in revoked)
            detail = {kind: str(count) for kind, count in sorted(counts.items())}
            record(tx, deps, user.org, user.name, "token_revoked", token, **detail)
        return TokenRevoked(
            id=token,
            name=row.name,
            dry_run=asked.dry_run,
            revoked=_show(revoked),
            still_valid=_show(stays),
        )

    return await deps.db.write(revoke)


def _split(
    tx: Tx, org: OrgId, token: TokenId, request: RevokeWish
) -> tuple[list[MadeCredential], list[MadeCredential]]:
    """Revoke what the request names; return that, and what of the token's making stays valid."""
    made = (
        _revoke_made(tx, org, token)
        if request.cascade and not request.dry_run
        else (_list_made(tx, org, token))
    )
    joined = credentials.list_made_runners(tx, org, token)
    if request.runners and not request.dry_run:
        for runner in joined:
            revoke_identity(
                tx, runner, RunnerState.REVOKED, "the token that let it join was revoked"
            )
    shown = [_name(MadeKind.RUNNER, runner.id, runner.name) for runner in joined]
    revoked = [*(made if request.cascade else ()), *(shown if request.runners else ())]
    stays = [*(() if request.cascade else made), *(() if request.runners else shown)]
    return revoked, stays


def _revoke_made(tx: Tx, org: OrgId, token: TokenId) -> list[MadeCredential]:
    # The tokens first: whoever waits for one of them makes nothing more once it is revoked.
    return _name_all(
        credentials.revoke_made_tokens(tx, org, token),
        credentials.void_made_enrolments(tx, org, token),
        credentials.drop_made_registry_tokens(tx, org, token),
        credentials.drop_made_codes(tx, org, token),
    )


def _list_made(tx: Tx, org: OrgId, token: TokenId) -> list[MadeCredential]:
    return _name_all(
        credentials.list_made_tokens(tx, org, token),
        credentials.list_made_enrolments(tx, org, token),
        credentials.list_made_registry_tokens(tx, org, token),
        credentials.list_made_codes(tx, org, token),
    )


def _name_all(
    tokens: Sequence[MadeToken],
    enrolments: Sequence[MadeEnrolment],
    registry_tokens: Sequence[RegistryToken],
    codes: Sequence[MadeCode],
) -> list[MadeCredential]:
    return [
        *(_name(MadeKind.TOKEN, row.id, row.name) for row in tokens),
        *(_name(MadeKind.ENROLMENT, row.id, row.queue_id) for row in enrolments),
        *(_name(MadeKind.REGISTRY_TOKEN, row.id, row.repository) for row in registry_tokens),
        *(_name(MadeKind.STACK_CODE, row.id, row.install_id) for row in codes),
    ]


def _name(kind: MadeKind, made: str, name: str) -> MadeCredential:
    return MadeCredential(kind=kind, id=made, name=name)


def _show(made: Sequence[MadeCredential]) -> MadeList:
    counts = Counter(str(credential.kind) for credential in made)
    return MadeList(counts=dict(sorted(counts.items())), items=list(made[:_MOST_NAMED]))
