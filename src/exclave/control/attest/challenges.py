"""Nonces for evidence: signed by the control plane, stored only when they are used.

A nonce that is given away leaves no row, so a flood of requests for them writes nothing. It is
used up before anything else of a request is looked at: each try needs a new one.
"""

from datetime import UTC, datetime, timedelta

from exclave.base.digests import hash_token
from exclave.control.deps import Deps
from exclave.domain.stacks import Cloud
from exclave.storage import install_identities
from exclave.storage.engine.database import Tx
from exclave.wire.attest import AskChallenge, Challenge

LIFETIME_S = 60.0
_KEPT = timedelta(minutes=10)
"""How long a used nonce is kept: longer than it could be shown again."""
_TIME, _RANDOM, _MARK = 8, 16, 32
_PREFIX = "a-"


async def issue_challenge(deps: Deps, request: AskChallenge) -> Challenge:
    """Return a nonce for an install, a cloud and a key. An unknown install gets one too.

    The time in it is that of the database, by which it is checked on whichever server.
    """
    now = await deps.db.read(lambda tx: tx.now)
    random = deps.ids.randomness.bits(4 * _RANDOM)
    body = f"{int(now.timestamp()):0{_TIME}x}{random:0{_RANDOM}x}"
    mark = _sign(deps, body, request.install_id, Cloud(request.cloud), request.public_key)
    return Challenge(nonce=f"{_PREFIX}{body}{mark}", expires_in_s=LIFETIME_S)


async def use_nonce(deps: Deps, nonce: str, install: str, cloud: Cloud, public_key: str) -> bool:
    """Use a nonce up; return whether it was fresh and for this install, cloud and key."""
    text = nonce.removeprefix(_PREFIX)
    body, mark = text[: _TIME + _RANDOM], text[_TIME + _RANDOM :]
    if len(mark) != _MARK or not nonce.startswith(_PREFIX):
        return False
    if not deps.vault.is_same(mark, _sign(deps, body, install, cloud, public_key)):
        return False
    issued_at = datetime.fromtimestamp(int(body[:_TIME], 16), UTC)

    def spend(tx: Tx) -> bool:
        unused = install_identities.spend_nonce(tx, hash_token(nonce), tx.now + _KEPT)
        return unused and 0.0 <= (tx.now - issued_at).total_seconds() <= LIFETIME_S

    return await deps.db.write(spend)


def _sign(deps: Deps, body: str, install: str, cloud: Cloud, public_key: str) -> str:
    data = f"{body} {install} {cloud} {public_key}"
    return deps.vault.sign("attestation nonce", data.encode())[:_MARK]
