"""The faults of one seed: each seed draws its own mix, so that none hides another."""

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class Mix:
    """How likely and how bad each fault is. Rates are mean seconds between two of a kind."""

    heal_at_s: float = 600.0
    loss: float = 0.0
    reply_loss: float = 0.0
    replay: float = 0.0
    delay_s: float = 0.02
    partition_every_s: float | None = None
    clog_every_s: float | None = None
    swizzle_every_s: float | None = None
    server_down_every_s: float | None = None
    crash_every_s: float | None = None
    crash_at_write: float = 0.0
    """How likely a write to the runner's disk is the last thing that its process does."""
    linger: float = 0.0
    """How likely children outlive their killed runner."""
    gone_for_good: float = 0.0
    """How likely a crashed machine never comes back."""
    freeze_every_s: float | None = None
    full_every_s: float | None = None
    """The runner's disk takes nothing for a while."""
    rotate_every_s: float | None = None
    """The control plane signs with a new key."""
    restore_every_s: float | None = None
    """The control plane comes back from a backup: all epochs so far are void."""
    remove_every_s: float | None = None
    """A person takes a runner's identity away for good."""
    skew_s: float = 0.0
    rate: float = 0.0
    cancel_every_s: float | None = None
    double_answers: float = 0.0
    late_answers_s: float = 5.0
    fail: float = 0.0
    """How likely a job fails by itself."""
    step_s: float | None = None
    """How long each step of a job takes, where that is not left to chance."""
    runners: tuple[int, ...] = (1, 1)
    workflows: int = 3
    retries: int = 2


CALM = Mix()
"""No fault at all."""


def draw_mix(random: Random) -> Mix:
    """Draw which faults a seed has, and how strong they are."""

    def maybe(chance: float, low: float, high: float) -> float:
        return random.uniform(low, high) if random.random() < chance else 0.0

    def every(chance: float, low: float, high: float) -> float | None:
        return maybe(chance, low, high) or None

    return Mix(
        heal_at_s=random.uniform(100, 400) if random.random() < 0.8 else random.uniform(400, 1500),
        loss=maybe(0.6, 0.01, 0.3),
        reply_loss=maybe(0.6, 0.01, 0.1),
        replay=maybe(0.6, 0.01, 0.5),
        delay_s=random.choice((0.02, 0.05, 0.2, 1.0)),
        partition_every_s=every(0.5, 20, 200),
        clog_every_s=every(0.3, 30, 200),
        swizzle_every_s=every(0.2, 80, 300),
        server_down_every_s=every(0.4, 60, 300),
        crash_every_s=every(0.6, 20, 200),
        crash_at_write=maybe(0.3, 0.005, 0.05),
        linger=random.choice((0.0, 0.5, 1.0)),
        gone_for_good=random.choice((0.0, 0.0, 0.2, 0.5)),
        freeze_every_s=every(0.5, 20, 200),
        skew_s=random.choice((0.0, 20.0, 50.0, 50.0, 600.0)),
        rate=random.choice((0.0, 0.02)),
        cancel_every_s=every(0.4, 40, 300),
        double_answers=maybe(0.5, 0.1, 1.0),
        late_answers_s=random.choice((2.0, 20.0, 120.0)),
        fail=maybe(0.4, 0.05, 0.3),
        full_every_s=every(0.3, 30, 200),
        rotate_every_s=every(0.3, 30, 200),
        restore_every_s=every(0.15, 100, 400),
        remove_every_s=every(0.15, 100, 400),
        runners=(random.choice((1, 2)), random.choice((1, 2))),
        workflows=random.choice((1, 2, 2, 3)),
    )
