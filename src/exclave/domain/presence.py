"""Runner presence, derived from the last heartbeat."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from exclave.domain.timings import Timings


class PresenceState(StrEnum):
    """Never seen, up, disabled by the customer, late or lost."""

    NEW = "new"
    UP = "up"
    DISABLED = "disabled"
    LATE = "late"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Presence:
    """A presence state and its cause, for people."""

    state: PresenceState
    cause: str


def decide_presence(
    seen_at: datetime | None,
    due_at: datetime | None,
    cause: str,
    now: datetime,
    timings: Timings,
    *,
    disabled: bool = False,
) -> Presence:
    """Return the presence of a runner; `due_at` is when its next heartbeat was due."""
    if seen_at is None or due_at is None:
        return Presence(PresenceState.NEW, "enrolled, never connected")
    if now < due_at and disabled:
        return Presence(PresenceState.DISABLED, "disabled by the customer")
    if now < due_at:
        return Presence(PresenceState.UP, "")
    silent = max(0, round((now - seen_at).total_seconds()))
    why = cause or f"no sign of life for {silent} s"
    gone = due_at + timedelta(seconds=timings.lost_after_s - timings.late_after_s)
    return Presence(PresenceState.LATE if now < gone else PresenceState.LOST, why)
