"""Rate limits per tenant and process: token buckets in memory, cheap enough for polls."""

import math
from dataclasses import dataclass
from typing import ClassVar

from exclave.base.errors import Kind, Problem

REQUEST_BURST_S = 5.0
LOG_BURST_S = 10.0
"""A bucket holds as much as flows into it in this many seconds."""
_MOST_BUCKETS = 100_000
_LONGEST_S = 60.0
_MINUTE_S = 60.0


class RateLimited(Problem):
    """The caller exceeded a rate limit; the request was not carried out."""

    kind: ClassVar = Kind.TOO_MANY
    code: ClassVar = "rate_limited"
    hint: ClassVar = (
        "Wait as long as `Retry-After` says, then go on more slowly; the operator of the control"
        " plane sets the limits (EXCLAVE_RATE_ORG and its kin)."
    )


@dataclass(frozen=True, slots=True)
class Limits:
    """Rates per second and process; 0 means no limit."""

    org: float = 0.0
    """Requests of one org to one API."""
    caller: float = 0.0
    """Requests with one API token, or of one runner."""
    log_bytes: float = 0.0
    """Bytes of log, as sent, of one org."""


class Rates:
    """One bucket per kind and name. The last request that is admitted may overdraw its bucket."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.refused = 0
        self._buckets: dict[tuple[str, str], tuple[float, float]] = {}

    def spend(
        self,
        kind: str,
        name: str,
        now: float,
        rate: float,
        *,
        cost: float = 1.0,
        burst_s: float = REQUEST_BURST_S,
    ) -> None:
        """Withdraw `cost` from a bucket; `RateLimited` while it is empty."""
        if rate <= 0:
            return
        key = (kind, name)
        level, at = self._buckets.get(key) or self._make_room(rate * burst_s, now)
        level = min(rate * burst_s, level + (now - at) * rate)
        if level <= 0:
            self.refused += 1
            wait_s = min(_LONGEST_S, max(1, math.ceil(-level / rate)))
            allowed = f"{rate:g} per second" if rate >= 1 else f"{rate * _MINUTE_S:g} per minute"
            message = f"too many {_WHAT[kind]}: {allowed} are allowed"
            raise RateLimited(message, limit=kind, retry_after_s=int(wait_s))
        self._buckets[key] = (level - cost, now)

    def _make_room(self, level: float, now: float) -> tuple[float, float]:
        """Return a full bucket; drop unused ones that are full again if there are too many."""
        if len(self._buckets) >= _MOST_BUCKETS:
            self._buckets = {
                key: held for key, held in self._buckets.items() if now - held[1] < _LONGEST_S
            }
        return (level, now)


_WHAT = {
    "control": "requests of this org",
    "runner": "requests of this org's runners",
    "token": "requests with this token",
    "machine": "requests of this runner",
    "registry": "requests of this org to the registry",
    "stack_guess": "unknown links from this address",
    "stack_link": "requests with this link",
    "beacon": "messages about the machine of this install",
    "log": "pieces of log of this org",
    "log_bytes": "bytes of log of this org",
    "attest_install": "tries to enrol a runner of this install",
    "attest_address": "tries to enrol runners from this address",
    "attest_audit": "refusals of this install to note",
}
