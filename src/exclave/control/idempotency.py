"""Idempotency keys: a repeated request gets the first answer and does nothing a second time."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

from exclave.base.digests import canonical_json, digest_bytes
from exclave.base.errors import Conflict, Kind, Problem
from exclave.control.deps import Deps
from exclave.domain.identity import User
from exclave.storage import audit
from exclave.storage.engine.database import Database, Tx
from exclave.storage.engine.group_commit import Handler

T = TypeVar("T")
C = TypeVar("C")
Reply = tuple[int, Any]
"""A status and a JSON body."""


class KeyReused(Problem):
    """The key was used for another request."""

    kind: ClassVar = Kind.CONFLICT
    code: ClassVar = "idempotency_key_reused"
    hint: ClassVar = "Use a fresh Idempotency-Key for each different request."


class AlreadyDone(Conflict):
    """The request was carried out before, and its reply is not at hand."""

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
    """Run a request unless its key was seen. The key is spent in the request's own transaction.

    Without `keep` the reply is not stored, as it holds a secret: a repetition is refused then.
    """
    asked = canonical_json([user.token, request])
    print_of = deps.vault.sign("idempotent request", asked)
    row = await deps.db.read(lambda tx: audit.find_reply(tx, user.org, user.account, key))
    # Rows of older versions hold a digest without a key; they are forgotten after a day.
    if row is not None and row.request not in {print_of, digest_bytes(asked)}:
        raise KeyReused("this Idempotency-Key was used for another request")
    if row is not None and row.status is not None:
        return row.status, row.reply
    once = _OnceDatabase(deps.db, lambda tx: _spend(tx, user, key, print_of))
    status, body = await run(replace(deps, db=once))
    if keep:
        await deps.db.write(
            lambda tx: audit.keep_reply(tx, user.org, user.account, key, status, body)
        )
    return status, body


def _spend(tx: Tx, user: User, key: str, print_of: str) -> None:
    if not audit.claim_key(tx, user.org, user.account, key, print_of):
        raise AlreadyDone("a request with this Idempotency-Key was carried out already")


class _OnceDatabase(Database):
    """The same database, whose first write of this request also spends the key."""

    def __init__(self, inner: Database, spend: Callable[[Tx], None]) -> None:
        self._inner = inner
        self._spend: Callable[[Tx], None] | None = spend

    async def read(self, query: Callable[[Tx], T], *, alone: bool = False) -> T:
        """Run a function that only reads."""
        return await self._inner.read(query, alone=alone)

    async def write(
        self, change: Callable[[Tx], T | Problem], *, key: str = "", patient: bool = False
    ) -> T:
        """Run a function in a transaction; the first also spends the key, or fails with it."""

        def change_once(tx: Tx) -> T | Problem:
            if self._spend is not None:
                self._spend(tx)
                tx.when_committed(self._forget)  # what is undone spends nothing
            return change(tx)

        return await self._inner.write(change_once, key=key, patient=patient)

    def _forget(self) -> None:
        self._spend = None

    async def write_each(
        self, handler: Handler[C, T], command: C, *, key: str = "", patient: bool = False
    ) -> T:
        """Hand over a command alone: the key is spent with it, or neither happens."""

        def change(tx: Tx) -> T:
            outcome = handler(tx, [command])[0]
            if isinstance(outcome, Problem):
                raise outcome
            return outcome

        return await self.write(change, key=key, patient=patient)
