"""The retry policy: which failures are retried, after which delay, and for how long."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from exclave.base.clock import Clock
from exclave.base.errors import Problem
from exclave.base.ids import Randomness, jitter
from exclave.client.problems import RemoteProblem, UnexpectedReply, Unreachable

T = TypeVar("T")
NoteRetry = Callable[[Problem, float], None]
"""Called with what failed and the seconds until the next attempt."""

_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_LONGEST_ASKED_S = 300.0


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential backoff with full jitter, `first_s` to `longest_s`; `give_up_s` ends it."""

    first_s: float = 0.5
    longest_s: float = 30.0
    give_up_s: float | None = None

    def choose_delay(self, randomness: Randomness, attempt: int, problem: Problem) -> float:
        """Return the delay after the failure number `attempt` (from 0); honours Retry-After."""
        pause = jitter(randomness, attempt, first=self.first_s, longest=self.longest_s)
        return max(pause, read_retry_after(problem))


def is_passing(problem: Problem) -> bool:
    """Return whether the same request may succeed later: no server has decided about it yet."""
    if isinstance(problem, RemoteProblem):
        return problem.status in _PASSING
    return isinstance(problem, Unreachable | UnexpectedReply)


def read_retry_after(problem: Problem) -> float:
    """Return the Retry-After of a problem in seconds; 0 without one."""
    asked = problem.facts.get("retry_after_s")
    return min(float(asked), _LONGEST_ASKED_S) if isinstance(asked, int | float) else 0.0


class Attempts:
    """The attempts at one piece of work: waits after failures, gives up as its policy says."""

    def __init__(
        self,
        policy: RetryPolicy,
        clock: Clock,
        randomness: Randomness,
        note: NoteRetry | None = None,
    ) -> None:
        self._policy = policy
        self._clock = clock
        self._randomness = randomness
        self._note = note
        self._began = clock.monotonic()
        self._failures = 0

    def note_progress(self) -> None:
        """Begin to count anew: the work got further, and what failed before does not matter."""
        self._began = self._clock.monotonic()
        self._failures = 0

    async def pause(self, problem: Problem) -> None:
        """Wait until the next attempt; raise the problem if there is none."""
        if not is_passing(problem):
            raise problem
        pause = self._policy.choose_delay(self._randomness, self._failures, problem)
        spent = self._clock.monotonic() + pause - self._began
        if self._policy.give_up_s is not None and spent > self._policy.give_up_s:
            raise problem
        if self._note is not None:
            self._note(problem, pause)
        await self._clock.sleep(pause)
        self._failures += 1


async def retry(
    call: Callable[[], Awaitable[T]], policy: RetryPolicy, clock: Clock, randomness: Randomness
) -> T:
    """Repeat a call until it gets a reply or the policy gives up."""
    attempts = Attempts(policy, clock, randomness)
    while True:
        try:
            return await call()
        except Problem as problem:
            await attempts.pause(problem)
