"""Ids, random values and tokens: the only module that uses randomness."""

import random
import secrets
from datetime import UTC, datetime, timedelta
from typing import Protocol

from exclave.base.clock import Clock
from exclave.base.id_forms import INSTALL

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's base 32 in lower case: sorts like the number, has no look-alikes."""

_PAIRS = tuple(high + low for high in _ALPHABET for low in _ALPHABET)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLIS_BITS = 47
"""Enough for the next four thousand years, which is more than a `datetime` can represent."""
_TIME_CHARS = 10
_RANDOM_CHARS = 16


class Randomness(Protocol):
    """A source of random bits and fractions."""

    def bits(self, count: int) -> int:
        """Return a number of random bits."""
        ...

    def fraction(self) -> float:
        """Return a random number in [0, 1)."""
        ...


class SystemRandomness:
    """Unpredictable randomness of the operating system."""

    def bits(self, count: int) -> int:
        """Return a number of random bits."""
        return secrets.randbits(count)

    def fraction(self) -> float:
        """Return a random number in [0, 1)."""
        return secrets.randbits(53) / (1 << 53)


class SeededRandomness:
    """Repeatable randomness for simulations; never for secrets of a real system."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - repeatable on purpose

    def bits(self, count: int) -> int:
        """Return the next bits of the seeded sequence."""
        return self._random.getrandbits(count)

    def fraction(self) -> float:
        """Return the next number in [0, 1) of the seeded sequence."""
        return self._random.random()


class Ids:
    """Generates ids that sort by creation time, and tokens with a recognisable prefix."""

    def __init__(self, clock: Clock, randomness: Randomness) -> None:
        self._clock = clock
        self.randomness = randomness

    def new(self, prefix: str) -> str:
        """Return an id such as `job_01k9…`: 48 bits of milliseconds, then 80 random bits."""
        return f"{prefix}_{self._new_tail()}"

    def new_install(self) -> str:
        """Return an id such as `inst01k9…`.

        Apps make names of it: namespaces, releases, buckets, roles, domains. So it has lower-case
        letters and digits only, and begins with a letter.
        """
        return f"{INSTALL}{self._new_tail()}"

    def _new_tail(self) -> str:
        millis = int(self._clock.now().timestamp() * 1000)
        tail = _encode(self.randomness.bits(80), _RANDOM_CHARS)
        return f"{_encode(millis, _TIME_CHARS)}{tail}"

    def token(self, prefix: str) -> str:
        """Return a token of 256 bits; people and scanners recognise it by the prefix."""
        return f"{prefix}_{_encode(self.randomness.bits(260), 52)}"


def read_moment(made: str) -> datetime | None:
    """Return when an id was created; None if the text is not an id."""
    digits = made.partition("_")[2][:_TIME_CHARS]
    if len(digits) != _TIME_CHARS or any(digit not in _ALPHABET for digit in digits):
        return None
    millis = 0
    for digit in digits:
        millis = millis << 5 | _ALPHABET.index(digit)
    if millis >> _MILLIS_BITS:
        return None
    return _EPOCH + timedelta(milliseconds=millis)


def _encode(number: int, chars: int) -> str:
    """Return the lowest bits in base 32, encoded two characters at a time."""
    shifts = range(5 * chars - 10, -1, -10)
    return "".join([_PAIRS[number >> shift & 0x3FF] for shift in shifts])


def jitter(randomness: Randomness, attempt: int, *, first: float, longest: float) -> float:
    """Return a back-off with full jitter: up to `first * 2^attempt`, at most `longest`."""
    ceiling = min(longest, first * 2.0 ** min(attempt, 32))
    return max(first / 10, randomness.fraction() * ceiling)
