"""The timing constants of the protocol, their bounds, and the order between them that is safe."""

from dataclasses import dataclass, fields

from exclave.base.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Timings:
    """Durations in seconds. The defaults are safe together; `check_timings` validates changes."""

    poll_hold_s: float = 25.0
    """How long a poll waits for work."""
    renew_s: float = 5.0
    """How often a runner renews its executions and shows that it is there."""
    late_after_s: float = 12.0
    """Without a sign for this long a runner is shown as late."""
    lost_after_s: float = 40.0
    """Without a sign for this long a runner is shown as lost; display only."""
    deadman_read_only_s: float = 45.0
    """A runner that cannot renew stops read-only work after this long."""
    deadman_mutating_s: float = 600.0
    """A runner that cannot renew stops mutating work after this long."""
    lost_read_only_s: float = 60.0
    """Silent read-only work is offered again after this long."""
    lost_mutating_s: float = 900.0
    """Silent mutating work is declared lost after this long."""
    start_grace_s: float = 300.0
    """After a start of the control plane, mutating work gets this much longer."""
    offer_s: float = 30.0
    """An offer that is not started within this time is withdrawn."""
    cancel_grace_s: float = 60.0
    """From SIGINT to SIGKILL when read-only work is cancelled."""
    cancel_grace_mutating_s: float = 180.0
    """From SIGINT to SIGKILL when mutating work is cancelled; SIGTERM comes at two thirds."""
    envelope_s: float = 3600.0
    """How long a signed envelope may be started."""
    access_token_s: float = 900.0
    """Life of a runner's access token."""
    enrolment_s: float = 3600.0
    """Life of a one-time enrolment token."""
    approval_s: float = 72 * 3600.0
    """How long a gate waits for its answer."""
    result_retry_s: float = 24 * 3600.0
    """How long a runner keeps trying to hand in a result."""
    max_attempts: int = 3
    """How often read-only work is tried."""


BOUNDS: dict[str, tuple[float, float]] = {
    "poll_hold_s": (0.05, 300),
    "renew_s": (0.05, 20),
    "late_after_s": (0.1, 120),
    "lost_after_s": (0.2, 3600),
    "deadman_read_only_s": (0.2, 3600),
    "deadman_mutating_s": (0.5, 6 * 3600),
    "lost_read_only_s": (0.3, 2 * 3600),
    "lost_mutating_s": (0.6, 12 * 3600),
    "start_grace_s": (0, 3600),
    "offer_s": (0.2, 600),
    "cancel_grace_s": (0.1, 600),
    "cancel_grace_mutating_s": (0.1, 1800),
    "envelope_s": (1, 3600),
    "access_token_s": (1, 3600),
    "enrolment_s": (1, 7 * 24 * 3600),
    "approval_s": (1, 30 * 24 * 3600),
    "result_retry_s": (1, 7 * 24 * 3600),
    "max_attempts": (1, 10),
}

_ORDERS = (
    ("renew_s", "late_after_s", "a runner would be late between two renewals"),
    ("late_after_s", "lost_after_s", "a runner would be lost before it is late"),
    ("renew_s", "deadman_read_only_s", "a runner would stop work between two renewals"),
    ("deadman_read_only_s", "lost_read_only_s", "work would be repeated while it still runs"),
    ("deadman_mutating_s", "lost_mutating_s", "work would be declared lost while it still runs"),
)


def check_timings(timings: Timings) -> Timings:
    """Raise on values out of bounds, and on values that would let two executions overlap."""
    for field in fields(timings):
        low, high = BOUNDS[field.name]
        value = getattr(timings, field.name)
        if not low <= value <= high:
            message = f"`{field.name}` is {value:g}, outside {low:g} to {high:g}"
            raise InvalidInput(message, setting=field.name)
    for smaller, larger, why in _ORDERS:
        if not getattr(timings, smaller) < getattr(timings, larger):
            message = f"`{smaller}` must be less than `{larger}`: otherwise {why}"
            raise InvalidInput(message, setting=smaller)
    stop_mutating = timings.deadman_mutating_s + timings.cancel_grace_mutating_s
    if stop_mutating >= timings.lost_mutating_s:
        message = (
            "`deadman_mutating_s` + `cancel_grace_mutating_s` must be less than `lost_mutating_s`"
        )
        raise InvalidInput(message, setting="lost_mutating_s")
    return timings
