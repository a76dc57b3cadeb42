"""Go's durations: nanoseconds, written like 1h2m3.5s."""

import re

from exclave.template.literals import MAX_INT

SECOND = 1_000_000_000
_UNITS = {
    "ns": 1, "us": 1_000, "µs": 1_000, "μs": 1_000, "ms": 1_000_000, "s": SECOND,
    "m": 60 * SECOND, "h": 3600 * SECOND,
}  # fmt: skip
_PART = re.compile(r"([0-9]{1,25})?(?:\.([0-9]{0,25}))?(ns|us|µs|μs|ms|s|m|h)")
_LONGEST = 400


def parse_duration(text: str) -> int | None:
    """Return a duration in nanoseconds; None if the text is not one."""
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return 0
    if not rest or len(rest) > _LONGEST:
        return None
    total = at = 0
    while at < len(rest):
        match = _PART.match(rest, at)
        if match is None or not (match[1] or match[2]):
            return None
        unit = _UNITS[match[3]]
        total += int(match[1] or 0) * unit
        if match[2]:
            total += int(match[2]) * unit // 10 ** len(match[2])
        at = match.end()
    return sign * total if total <= MAX_INT else None


def format_duration(nanoseconds: int) -> str:
    """Return a duration as Go's `Duration.String` prints it."""
    sign, left = ("-" if nanoseconds < 0 else ""), abs(nanoseconds)
    if left == 0:
        return "0s"
    if left < SECOND:
        for unit in ("ms", "µs", "ns"):
            if left >= _UNITS[unit]:
                return f"{sign}{_decimal(left, _UNITS[unit])}{unit}"
    minutes, rest = divmod(left, 60 * SECOND)
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(rest, SECOND)}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    if hours:
        text = f"{hours}h{text}"
    return sign + text


def _decimal(number: int, unit: int) -> str:
    whole, rest = divmod(number, unit)
    width = len(str(unit)) - 1
    fraction = f"{rest:0{width}d}".rstrip("0") if width else ""
    return f"{whole}.{fraction}" if fraction else str(whole)
