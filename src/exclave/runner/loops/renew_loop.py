"""The renew loop: renews leases, and is the heartbeat of the runner."""

from exclave.base.errors import Problem
from exclave.base.logs import Log
from exclave.client.retry import RetryPolicy
from exclave.runner.control_plane.access_token import IdentityRefused
from exclave.runner.executions.deps import Deps
from exclave.runner.executions.roster import Drawn
from exclave.runner.executions.stop import cancel, supersede
from exclave.runner.wakeups import wait_first
from exclave.wire.runner import Renew, RenewedExecution, RenewReply

_log = Log("runner.renewing")

_SPREAD = 0.1


class Renewer:
    """Sends one renewal at a time, at the interval that the replies set."""

    def __init__(self, deps: Deps) -> None:
        self._deps = deps
        self._failures = 0

    async def run(self) -> None:
        """Renew until cancelled; news shortens the wait, and a poll replaces a heartbeat."""
        deps, signals = self._deps, self._deps.signals
        while True:
            signals.renew_soon.clear()
            pause = await self._renew_or_back_off()
            while pause > 0 and not signals.renew_soon.is_set():
                await wait_first(deps.clock, pause, signals.renew_soon.wait())
                resting = not (self._failures or deps.roster.list_alive())
                pause = deps.pace.seconds_until_next(deps.clock.monotonic()) if resting else 0.0

    async def renew(self) -> None:
        """Send one renewal and act on the reply."""
        sent_at = self._deps.clock.monotonic()
        drawn: Drawn | None = None

        async def send(token: str) -> RenewReply:
            nonlocal drawn, sent_at
            drawn, sent_at = self._deps.roster.draw(), self._deps.clock.monotonic()
            return await self._deps.api.renew(token, self._build_request(drawn))

        reply = await self._deps.session.call(send)
        self._deps.pace.ask(reply.renew_s)
        self._deps.pace.note_sign(sent_at)
        self._deps.signals.note_contact(sent_at)
        if drawn is not None:
            self._obey(drawn, reply, sent_at)

    async def _renew_or_back_off(self) -> float:
        try:
            await self.renew()
        except IdentityRefused:
            raise
        except Problem as problem:
            return self._note_failure(problem)
        if self._failures:
            _log.info("control_plane_answers", failures=self._failures)
        self._failures = 0
        busy = self._deps.roster.count_busy() > 0
        asked = self._deps.pace.every_s
        pace = min(asked, self._deps.timings.renew_s) if busy else asked
        return pace * (1 - _SPREAD * self._deps.randomness.fraction())

    def _note_failure(self, problem: Problem) -> float:
        if problem.code != "stale_request":
            self._deps.signals.note_silence()
            _log.warning("renew_failed", code=problem.code, message=problem.message)
        policy = RetryPolicy(first_s=self._deps.timings.renew_s / 5, longest_s=self._pace_limit())
        pause = policy.choose_delay(self._deps.randomness, self._failures, problem)
        self._failures += 1
        return pause

    def _pace_limit(self) -> float:
        """Return the longest pause between attempts; while jobs run, the normal interval."""
        busy = self._deps.roster.count_busy() > 0
        return self._deps.timings.renew_s * (1 if busy else 4)

    def _build_request(self, drawn: Drawn) -> Renew:
        return Renew(
            boot=drawn.boot,
            no=drawn.no,
            executions=[
                RenewedExecution(
                    id=execution.id,
                    epoch=execution.epoch,
                    log_end=execution.log.end if execution.log else 0,
                )
                for execution in drawn.alive
            ],
            stats=self._deps.collect_stats(),
        )

    def _obey(self, drawn: Drawn, reply: RenewReply, sent_at: float) -> None:
        for execution in drawn.alive:
            match reply.verdicts.get(execution.id):
                case "ok":
                    execution.confirmed_at = max(execution.confirmed_at, sent_at)
                case "cancel":
                    execution.confirmed_at = max(execution.confirmed_at, sent_at)
                    cancel(self._deps, execution)
                case "superseded":
                    supersede(self._deps, execution)
                case None:
                    pass
