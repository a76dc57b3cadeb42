"""Rate limits of requests; those that keep executions alive have buckets apart from logs."""

from starlette.types import Scope

from exclave.control.deps import Deps
from exclave.control.runtime.rates import LOG_BURST_S
from exclave.domain.identity import RunnerIdentity, User

_LOG = "/log"
_VITAL = ("/renew", "/start", "/result")
"""Without these requests, work is lost: only the runner's own limit applies to them."""
_UNKNOWN_BYTES = 4 << 20
"""The assumed size of a log segment without a Content-Length: the most that the route reads."""


def charge_user(deps: Deps, user: User, scope: Scope) -> None:
    """Charge a request of a user; `RateLimited` above the limit."""
    del scope
    rates, now = deps.rates, deps.clock.monotonic()
    rates.spend("token", user.token, now, rates.limits.caller)
    rates.spend("control", user.org, now, rates.limits.org)


def charge_runner(deps: Deps, who: RunnerIdentity, scope: Scope) -> None:
    """Charge a request of a runner; logs have buckets of their own."""
    rates, now, path = deps.rates, deps.clock.monotonic(), scope["path"]
    if path.endswith(_LOG):
        rates.spend("log", who.org, now, rates.limits.org)
        rates.spend(
            "log_bytes",
            who.org,
            now,
            rates.limits.log_bytes,
            cost=_read_size(scope),
            burst_s=LOG_BURST_S,
        )
        return
    rates.spend("machine", who.runner, now, rates.limits.caller)
    if not is_vital(scope):
        rates.spend("runner", who.org, now, rates.limits.org)


def is_vital(scope: Scope) -> bool:
    """Return whether an execution may be lost if the request is refused."""
    path: str = scope["path"]
    return path.endswith(_VITAL)


def _read_size(scope: Scope) -> int:
    header = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
    return min(int(header), _UNKNOWN_BYTES) if header.isdigit() else _UNKNOWN_BYTES
