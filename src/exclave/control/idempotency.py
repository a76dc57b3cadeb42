"""Idempotency keys: a repeated request gets the first reply and changes nothing a second time.

Why this exists: a client whose connection broke cannot know whether its request was carried out.
With an `Idempotency-Key` it may simply send the request again. Without it, a retried `POST` starts
a second workflow or creates a second token.

The key is spent inside the first transaction that the use case itself writes. A key that was
stored before it would block the retry of a request that crashed in between; one that was stored
after it would let the retry run a second time. Use cases do not know about keys: they get `Deps`
whose `db` is a `_KeyedTransactions`, which adds the key to their first write.

The reply is stored in a transaction of its own afterwards. A crash in between leaves a spent key
without a reply: the retry is then answered with `already_done`, and nothing happens twice.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import ClassVar, TypeVar

from exclave.base.digests import canonical_json, digest_bytes
from exclave.base.errors import Conflict, Kind, Problem
from exclave.base.json_values import Json
from exclave.control.deps import Deps
from exclave.domain.identity import User
from exclave.storage import audit
from exclave.storage.engine.database import Transactions, Tx
from exclave.storage.engine.dialects import Dialect
from exclave.storage.engine.group_commit import Handler
from exclave.storage.engine.growth import Growth

T = TypeVar("T")
C = TypeVar("C")
Reply = tuple[int, Json]
"""A status and a JSON body."""


class KeyReused(Problem):
    """The key was used for another request."""

    kind: ClassVar = Kind.CONFLICT
    code: ClassVar = "idempotency_key_reused"
    hint: ClassVar = "Use a fresh Idempotency-Key for each different request."


class AlreadyDone(Conflict):
    """The request was carried out before, but its reply was not stored."""

    code = "already_done"
    hint = "It will not be done twice. Look at the list to see what it made."


async def answer_once(
    deps: Deps,
    user: User,
    key: str,
    request: object,
    run: Callable[[Deps], Awaitable[Reply]],
    *,
    keep: bool = True,
) -> Reply:
    """Run a request, or return the stored reply if its key was used before.

    With `keep=False` the reply is not stored, because it holds a secret: a repeated request is
    refused with `already_done` then.
    """
    content = canonical_json([user.token, request])
    # Signed, not only hashed: requests hold secrets that a plain digest would let one guess.
    fingerprint = deps.vault.sign("idempotent request", content)
    row = await deps.db.read(lambda tx: audit.find_reply(tx, user.org, user.account, key))
    # Rows of older versions hold an unsigned digest; they are deleted after a day.
    if row is not None and row.request not in {fingerprint, digest_bytes(content)}:
        raise KeyReused("this Idempotency-Key was used for another request")
    if row is not None and row.status is not None:
        return row.status, row.reply
    keyed = _KeyedTransactions(deps.db, lambda tx: _spend(tx, user, key, fingerprint))
    status, body = await run(replace(deps, db=keyed))
    if keep:
        await deps.db.write(
            lambda tx: audit.keep_reply(tx, user.org, user.account, key, status, body)
        )
    return status, body


def _spend(tx: Tx, user: User, key: str, fingerprint: str) -> None:
    if not audit.claim_key(tx, user.org, user.account, key, fingerprint):
        raise AlreadyDone("a request with this Idempotency-Key was carried out already")


class _KeyedTransactions:
    """The transactions of one request, the first committed write of which also spends the key."""

    def __init__(self, inner: Transactions, spend: Callable[[Tx], None]) -> None:
        self._inner = inner
        self._spend: Callable[[Tx], None] | None = spend

    @property
    def dialect(self) -> Dialect:
        """The database that the statements are written for."""
        return self._inner.dialect

    @property
    def growth(self) -> Growth:
        """What was stored through this server and is not yet counted."""
        return self._inner.growth

    async def read(self, query: Callable[[Tx], T], *, alone: bool = False) -> T:
        """Run a function that only reads."""
        return await self._inner.read(query, alone=alone)

    async def write(
        self, change: Callable[[Tx], T | Problem], *, key: str = "", patient: bool = False
    ) -> T:
        """Run a function in a transaction; the first one also spends the key."""

        def change_once(tx: Tx) -> T | Problem:
            if self._spend is not None:
                self._spend(tx)
                # Only a commit spends the key: the next write of an undone request tries again.
                tx.when_committed(self._forget)
            return change(tx)

        return await self._inner.write(change_once, key=key, patient=patient)

    def _forget(self) -> None:
        self._spend = None

    async def write_each(
        self, handler: Handler[C, T], command: C, *, key: str = "", patient: bool = False
    ) -> T:
        """Run a command in a transaction of its own, so that only its request spends the key."""

        def change(tx: Tx) -> T:
            outcome = handler(tx, [command])[0]
            if isinstance(outcome, Problem):
                raise outcome
            return outcome

        return await self.write(change, key=key, patient=patient)
