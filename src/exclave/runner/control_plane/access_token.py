"""The runner's access token: requested with the key, refreshed early, never twice at once."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from exclave.base.clock import Clock
from exclave.base.errors import Kind, Problem
from exclave.base.ids import Randomness
from exclave.base.secrets import Secret
from exclave.client.problems import RemoteProblem
from exclave.client.retry import is_passing
from exclave.client.runner import RunnerApi
from exclave.runner.control_plane.identity import Identity, save_identity
from exclave.runner.data_folder import DataFolder
from exclave.wire.envelope import encode_bytes
from exclave.wire.runner import AskNonce, AskToken, RunnerTimings, TokenReply, token_message

T = TypeVar("T")

_FINAL_CODES = frozenset({"runner_locked", "runner_revoked"})
_MOST_REFUSALS = 5
_EARLIEST, _LATEST = 0.50, 0.75
_TRY_AGAIN_S = 5.0
_UNAUTHENTICATED = 401


class IdentityRefused(Problem):
    """The control plane revoked this runner's identity: it stops its jobs and exits."""

    kind: ClassVar = Kind.FORBIDDEN
    code: ClassVar = "identity_refused"
    hint: ClassVar = "Ask the vendor why; then enrol again into an empty data folder."


@dataclass(frozen=True, slots=True)
class _Held:
    token: Secret
    refresh_at: float
    expires_at: float


class Session:
    """Makes authenticated calls; stores generation and nonce on disk before they are used."""

    def __init__(
        self,
        api: RunnerApi,
        disk: DataFolder,
        identity: Identity,
        key: Ed25519PrivateKey,
        *,
        clock: Clock,
        randomness: Randomness,
        note_token: Callable[[Secret], None] | None = None,
    ) -> None:
        self._note_token = note_token
        self._api = api
        self._disk = disk
        self._key = key
        self._clock = clock
        self._randomness = randomness
        self._held: _Held | None = None
        self._refreshing: asyncio.Task[Secret] | None = None
        self._refusals = 0
        self.identity = identity

    @property
    def timings(self) -> RunnerTimings:
        """The durations that the control plane sent last."""
        return self.identity.timings

    async def call(self, send: Callable[[str], Awaitable[T]]) -> T:
        """Make a call with a valid token; if it is refused, retry once with a new one."""
        token = await self._get_token()
        try:
            return await send(token.reveal())
        except RemoteProblem as problem:
            _raise_final(problem)
            if problem.status != _UNAUTHENTICATED:
                raise
        if self._held is not None and self._held.token == token:
            self._held = None
        return await send((await self._get_token()).reveal())

    async def get_token(self) -> Secret:
        """Return a valid access token, for calls that another client makes."""
        return await self._get_token()

    def close(self) -> None:
        """Abandon a refresh in progress; it can safely be started again later."""
        if self._refreshing is not None:
            self._refreshing.cancel()

    async def _get_token(self) -> Secret:
        now, held = self._clock.monotonic(), self._held
        if held is None or now >= held.expires_at:
            return await asyncio.shield(self._begin_refresh())
        if now >= held.refresh_at:
            self._held = _Held(held.token, now + _TRY_AGAIN_S, held.expires_at)
            self._begin_refresh()
        return held.token

    def _begin_refresh(self) -> asyncio.Task[Secret]:
        if self._refreshing is None:
            self._refreshing = asyncio.create_task(self._refresh())
            self._refreshing.add_done_callback(self._end_refresh)
        return self._refreshing

    def _end_refresh(self, task: asyncio.Task[Secret]) -> None:
        self._refreshing = None
        if not task.cancelled():
            task.exception()  # a waiting call gets the error; otherwise the next call tries again

    async def _refresh(self) -> Secret:
        sent_at = self._clock.monotonic()
        reply = await self._ask_token()
        self._save(
            generation=reply.generation, pending_nonce=reply.next_nonce, timings=reply.timings
        )
        self._refusals = 0
        share = _EARLIEST + (_LATEST - _EARLIEST) * self._randomness.fraction()
        token = Secret(reply.access_token)
        if self._note_token is not None:
            self._note_token(token)
        self._held = _Held(
            token, sent_at + share * reply.expires_in_s, sent_at + reply.expires_in_s
        )
        return token

    async def _ask_token(self) -> TokenReply:
        """Request a token with the current generation. A used or expired nonce is replaced once."""
        try:
            had_one = self.identity.pending_nonce is not None
            return await self._sign_and_ask()
        except RemoteProblem as problem:
            self._note_refusal(problem)
            if not had_one:
                raise
        try:
            return await self._sign_and_ask()
        except RemoteProblem as problem:
            self._note_refusal(problem)
            raise

    async def _sign_and_ask(self) -> TokenReply:
        me = self.identity
        nonce = me.pending_nonce
        if nonce is None:
            nonce = (await self._api.ask_nonce(AskNonce(runner_id=me.runner_id))).nonce
            self._save(pending_nonce=nonce)
        message = token_message(me.runner_id, nonce, me.generation)
        return await self._api.ask_token(
            AskToken(
                runner_id=me.runner_id,
                nonce=nonce,
                generation=me.generation,
                signature=encode_bytes(self._key.sign(message)),
            )
        )

    def _note_refusal(self, problem: RemoteProblem) -> None:
        _raise_final(problem)
        if is_passing(problem):
            raise problem
        self._save(pending_nonce=None)
        self._refusals += 1
        if self._refusals >= _MOST_REFUSALS:
            message = f"the control plane refuses this runner: {problem.message}"
            raise IdentityRefused(message, code=problem.code) from problem

    def _save(self, **changes: object) -> None:
        """Store a changed identity. If the disk refuses it, the old one stays in use.

        A generation that only memory knows would be presented by this process, and the one before
        it by the next: two holders of one key.
        """
        identity = self.identity.model_copy(update=changes)
        save_identity(self._disk, identity)
        self.identity = identity


def _raise_final(problem: RemoteProblem) -> None:
    if problem.code in _FINAL_CODES:
        raise IdentityRefused(problem.message, hint=problem.advice, code=problem.code) from problem
