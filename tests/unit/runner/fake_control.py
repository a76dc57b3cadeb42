"""A control plane in memory, as small as the runner's rules allow, that fails on request."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal, TypeVar

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from exclave.base.clock import Clock
from exclave.base.ids import Ids, SeededRandomness
from exclave.client.problems import RemoteProblem, Unreachable
from exclave.client.work import WorkApi
from exclave.wire.envelope import (
    encode_bytes,
    public_text,
    sign_dispatch,
    verify_signature,
    vouch_message,
)
from exclave.wire.runner import (
    AskNonce,
    AskToken,
    Dispatch,
    Enrol,
    Enrolled,
    LogReply,
    NonceReply,
    Offer,
    Outcome,
    Poll,
    PollReply,
    QueueKind,
    Renew,
    RenewReply,
    Result,
    ResultReply,
    RunnerTimings,
    ServerKey,
    ServerKeys,
    Start,
    StartReply,
    TokenReply,
    token_message,
)
from exclave.wire.specs import NoopSpec

T = TypeVar("T")

TIMINGS = RunnerTimings(
    poll_hold_s=25.0,
    renew_s=5.0,
    deadman_read_only_s=45.0,
    deadman_mutating_s=600.0,
    cancel_grace_s=60.0,
    cancel_grace_mutating_s=180.0,
    result_retry_s=24 * 3600.0,
)


@dataclass
class Known:
    """An execution as the control plane sees it."""

    dispatch: Dispatch
    envelope: str
    nonce: str = ""
    state: Literal["queued", "offered", "running", "ended", "withdrawn"] = "queued"
    cancel: bool = False
    superseded: bool = False
    started_no: tuple[int, int] = (0, 0)
    results: list[Outcome] = field(default_factory=list)
    lost_by_proof: bool = False


class FakeControl:
    """Implements `RunnerApi`."""

    def __init__(self, clock: Clock, *, seed: int = 1) -> None:
        self.clock = clock
        self.ids = Ids(clock, SeededRandomness(seed))
        self.key = Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32)
        self.keys = [ServerKey(kid="k1", public_key=public_text(self.key))]
        self.org_id, self.queue_id, self.runner_id = (
            self.ids.new(one) for one in ("org", "ins", "run")
        )
        self.executions: dict[str, Known] = {}
        self.sequence = 0
        self.generation = 1
        self.newest_used = True
        self.newest = ""
        self.tokens: dict[str, float] = {}
        self.nonces: dict[str, None] = {}
        self.public_key = ""
        self.locked = ""
        self.down = False
        self.down_for: dict[str, None] = {}
        self.lose_replies: Counter[str] = Counter()
        self.refuse_start = False
        self.calls: Counter[str] = Counter()
        self.polls: list[Poll] = []
        self.renewals: list[tuple[float, Renew]] = []
        self.news = asyncio.Event()
        self.timings = TIMINGS
        self.proven: list[str] = []
        self.loss = 0.0
        self.slowest_s = 0.01

    @property
    def work(self) -> WorkApi:
        raise AssertionError("no job of these tests needs it")

    # What a test does

    def add_job(self, *, mutating: bool = False, **changes: Any) -> str:
        self.sequence += 1
        now = self.clock.now()
        facts: dict[str, Any] = {
            "org_id": self.org_id,
            "queue_id": self.queue_id,
            "runner_id": self.runner_id,
            "job_id": self.ids.new("job"),
            "execution_id": self.ids.new("exe"),
            "epoch": self.sequence,
            "sequence": self.sequence,
            "nonce": self.ids.new("non"),
            "issued_at": now,
            "expires_at": now + timedelta(hours=1),
            "mutating": mutating,
            "lanes": [],
            "spec": NoopSpec(),
            **changes,
        }
        dispatch = Dispatch(**facts)
        self.add_envelope(dispatch, sign_dispatch(self.key, self.keys[-1].kid, dispatch))
        return dispatch.execution_id

    def add_envelope(self, dispatch: Dispatch, envelope: str) -> None:
        self.executions[dispatch.execution_id] = Known(dispatch, envelope)
        self.news.set()

    def rotate_key(self, *, chained: bool = True) -> None:
        new = Ed25519PrivateKey.from_private_bytes(bytes([len(self.keys) + 100]) * 32)
        kid = f"k{len(self.keys) + 1}"
        voucher = self.key if chained else new
        signature = encode_bytes(voucher.sign(vouch_message(kid, public_text(new))))
        self.keys.append(
            ServerKey(
                kid=kid,
                public_key=public_text(new),
                signed_by=self.keys[-1].kid,
                signature=signature,
            )
        )
        self.key = new

    def result_of(self, execution_id: str) -> Outcome | None:
        results = self.executions[execution_id].results
        return results[0] if results else None

    # What the runner calls

    async def enrol(self, request: Enrol) -> Enrolled:
        await self._travel("enrol")
        self.public_key = request.public_key
        return await self._answer(
            "enrol",
            Enrolled(
                runner_id=self.runner_id,
                org_id=self.org_id,
                queue_id=self.queue_id,
                kind=QueueKind.INSTALL,
                generation=1,
                keys=self.keys,
                timings=self.timings,
            ),
        )

    async def ask_nonce(self, request: AskNonce) -> NonceReply:
        await self._travel("ask_nonce")
        nonce = self.ids.token("nn")[:40]
        self.nonces[nonce] = None
        return await self._answer("ask_nonce", NonceReply(nonce=nonce))

    async def ask_token(self, request: AskToken) -> TokenReply:
        await self._travel("ask_token")
        if self.locked:
            raise RemoteProblem(403, self.locked, "the runner was locked")
        message = token_message(request.runner_id, request.nonce, request.generation)
        if request.nonce not in self.nonces:
            raise RemoteProblem(401, "unauthenticated", "the nonce is unknown")
        assert verify_signature(self.public_key, message, request.signature)
        del self.nonces[request.nonce]
        late = request.generation == self.generation - 1 and not self.newest_used
        if request.generation != self.generation and not late:
            self.locked = "runner_locked"
            raise RemoteProblem(403, "runner_locked", "two holders of one key")
        self.generation = request.generation + 1
        self.newest_used = False
        token = self.newest = self.ids.token("xcr")
        self.tokens[token] = self.clock.monotonic() + 900.0
        ahead = self.ids.token("nn")[:40]
        self.nonces[ahead] = None
        return await self._answer(
            "ask_token",
            TokenReply(
                access_token=token,
                expires_in_s=900.0,
                generation=self.generation,
                next_nonce=ahead,
                timings=self.timings,
            ),
        )

    async def get_keys(self) -> ServerKeys:
        await self._travel("get_keys")
        return await self._answer("get_keys", ServerKeys(keys=self.keys))

    async def poll(self, token: str, request: Poll) -> PollReply:
        await self._travel("poll", token)
        self.polls.append(request)
        self._prove_stops((request.boot, request.no), request.executions)
        for name, known in self.executions.items():
            if (
                known.state == "offered"
                and known.nonce != request.nonce
                and name not in request.executions
            ):
                known.state = "withdrawn"
        until = self.clock.monotonic() + min(request.max_hold_s, self.timings.poll_hold_s)
        while True:
            offers = self._claim(request)
            if offers or self.clock.monotonic() >= until:
                break
            self.news.clear()
            try:
                async with asyncio.timeout(until - self.clock.monotonic()):
                    await self.news.wait()
            except TimeoutError:
                pass
        return await self._answer("poll", PollReply(offers=offers, renew_s=self.timings.renew_s))

    async def renew(self, token: str, request: Renew) -> RenewReply:
        await self._travel("renew", token)
        self.renewals.append((self.clock.monotonic(), request))
        self._prove_stops((request.boot, request.no), [one.id for one in request.executions])
        verdicts = {one.id: self._judge(one.id) for one in request.executions}
        return await self._answer(
            "renew",
            RenewReply.model_validate({"verdicts": verdicts, "renew_s": self.timings.renew_s}),
        )

    async def start(self, token: str, execution_id: str, request: Start) -> StartReply:
        await self._travel("start", token)
        known = self._find(execution_id)
        if self.refuse_start or known.state not in {"offered", "running"}:
            raise RemoteProblem(409, "superseded", "not yours to start")
        known.state = "running"
        known.started_no = (request.boot, request.no)
        return await self._answer("start", StartReply(cancel=known.cancel))

    async def append_log(
        self, token: str, execution_id: str, *, offset: int, epoch: int, frame: bytes
    ) -> LogReply:
        await self._travel("append_log", token)
        return LogReply(next_offset=offset)

    async def hand_in(self, token: str, execution_id: str, request: Result) -> ResultReply:
        await self._travel("hand_in", token)
        known = self._find(execution_id)
        if known.results and known.results[0] == request.outcome:
            return ResultReply(recorded=True)
        if known.state in {"ended", "withdrawn"} or known.superseded:
            raise RemoteProblem(409, "superseded", "has ended already")
        known.results.append(request.outcome)
        known.state = "ended"
        return await self._answer("hand_in", ResultReply(recorded=True))

    # How it fails

    async def _travel(self, name: str, token: str | None = None) -> None:
        self.calls[name] += 1
        await self.clock.sleep(self._fraction() * self.slowest_s)
        if self.down or name in self.down_for or self._fraction() < self.loss:
            await self.clock.sleep(1.0)
            raise Unreachable("nobody answers", cause="refused")
        if token is not None:
            if self.locked:
                raise RemoteProblem(401, self.locked, "the runner was locked")
            if self.tokens.get(token, 0.0) <= self.clock.monotonic():
                raise RemoteProblem(401, "unauthenticated", "the token is unknown or expired")
            self.newest_used = self.newest_used or token == self.newest

    async def _answer(self, name: str, reply: T) -> T:
        await self.clock.sleep(self._fraction() * self.slowest_s)
        if self.lose_replies[name] > 0 or self._fraction() < self.loss:
            self.lose_replies[name] = max(0, self.lose_replies[name] - 1)
            await self.clock.sleep(1.0)
            raise Unreachable("the reply was lost", cause="timeout")
        return reply

    def _fraction(self) -> float:
        return self.ids.randomness.fraction()

    def _claim(self, request: Poll) -> list[Offer]:
        again = [
            one
            for one in self.executions.values()
            if one.nonce == request.nonce and one.state == "offered"
        ]
        if not again:
            again = [one for one in self.executions.values() if one.state == "queued"][
                : request.free
            ]
            for one in again:
                one.state, one.nonce = "offered", request.nonce
        return [
            Offer(
                execution_id=one.dispatch.execution_id,
                epoch=one.dispatch.epoch,
                envelope=one.envelope,
            )
            for one in again
        ]

    def _prove_stops(self, number: tuple[int, int], alive: list[str]) -> None:
        for name, known in self.executions.items():
            if known.state == "running" and name not in alive and number > known.started_no:
                known.state, known.lost_by_proof = "ended", True
                self.proven.append(name)

    def _judge(self, execution_id: str) -> str:
        known = self.executions.get(execution_id)
        if known is None or known.superseded or known.state in {"ended", "withdrawn"}:
            return "superseded"
        return "cancel" if known.cancel else "ok"

    def _find(self, execution_id: str) -> Known:
        if execution_id not in self.executions:
            raise RemoteProblem(404, "not_found", "there is no such execution")
        return self.executions[execution_id]
