"""Presence: whether a runner is there, seen from its last sign of life."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from exclave.domain.timings import Timings


class PresenceState(StrEnum):
    """Never seen, up, there but disabled by the customer, late or lost."""

    NEW = "new"
    UP = "up"
    DISABLED = "disabled"
    LATE = "late"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Presence:
    """A state with the cause that a person can act on."""

    state: PresenceState
    cause: str


def tell_presence(
    seen_at: datetime | None,
    due_at: datetime | None,
    cause: str,
    now: datetime,
    timings: Timings,
    *,
    disabled: bool = False,
) -> Presence:
    """Judge a runner: `due_at` is when its next sign of life was expected at the latest."""
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
