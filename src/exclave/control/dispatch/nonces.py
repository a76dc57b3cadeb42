"""Nonces that anybody may request: signed by the control plane, stored only when spent.

A nonce that is given away leaves no row, so a flood of requests for them writes nothing. The one
who spends it has proven to hold a runner's key; only then it is stored, so that it counts once.
"""

from datetime import UTC, datetime, timedelta

from exclave.control.deps import Deps

_PREFIX = "s-"
"""Nonces that are stored ahead have no hyphen."""
_WITHIN = timedelta(minutes=10)
"""How old a nonce may be, and how far our clock may differ from the database's."""
KEPT = 3 * _WITHIN
"""How long a used nonce is kept: longer than it could be shown again."""
_TIME, _RANDOM, _MARK = 8, 16, 32


def make_nonce(deps: Deps, runner: str, generation: int) -> str:
    """Return a nonce for a runner and its token generation; it reveals neither."""
    issued = f"{int(deps.clock.now().timestamp()):0{_TIME}x}"
    body = f"{issued}{deps.ids.randomness.bits(4 * _RANDOM):0{_RANDOM}x}"
    return f"{_PREFIX}{body}{_sign(deps, body, runner, generation)}"


def is_signed(nonce: str) -> bool:
    """Return whether a nonce has the form of a signed one."""
    return nonce.startswith(_PREFIX)


def is_genuine(
    deps: Deps, nonce: str, runner: str, generations: tuple[int, ...], now: datetime
) -> bool:
    """Return whether a nonce was recently issued to this runner at one of these generations."""
    text = nonce.removeprefix(_PREFIX)
    body, mark = text[: _TIME + _RANDOM], text[_TIME + _RANDOM :]
    if len(mark) != _MARK:
        return False
    made = (_sign(deps, body, runner, generation) for generation in generations)
    if not any(deps.vault.is_same(mark, signature) for signature in made):
        return False
    return abs(now - datetime.fromtimestamp(int(body[:_TIME], 16), UTC)) <= _WITHIN


def _sign(deps: Deps, body: str, runner: str, generation: int) -> str:
    return deps.vault.sign("token nonce", f"{body} {runner} {generation}".encode())[:_MARK]
