"""sprig: dates and durations, always in UTC; the current time only if the caller passes it."""

from datetime import UTC, datetime, timedelta

from exclave.template import durations, layouts
from exclave.template.functions.signature import Env, Param, Registry
from exclave.template.literals import MAX_INT
from exclave.template.problems import Fault
from exclave.template.values import Int64, Time, Value, wrap_int64

DATES = Registry()
ANY, TEXT, TIME = Param.ANY, Param.TEXT, Param.TIME

_ZONES = frozenset({"", "UTC", "Local", "GMT", "Etc/UTC", "Z"})
_HTML = "2006-01-02"
_EPOCH = Time(1970, 1, 1, tzinfo=UTC)
_ROUNDED = (
    (365 * 24 * 3600, "y"), (30 * 24 * 3600, "mo"), (24 * 3600, "d"), (3600, "h"), (60, "m"),
    (1, "s"),
)  # fmt: skip


@DATES.add_with_env("now")
def now(env: Env) -> Time:
    """Return the time of this rendering."""
    if env.now is None:
        raise Fault(
            "now is not available here: two renderings of the same template would differ",
            hint="Hand the time in as an input.",
        )
    return env.now


@DATES.add_with_env("date", takes=(TEXT, ANY))
def date(env: Env, layout: str, moment: Value) -> str:
    """Return a date formatted by a layout, in UTC."""
    return date_in_zone(env, layout, moment, "UTC")


@DATES.add_with_env("htmlDate", takes=(ANY,))
def html_date(env: Env, moment: Value) -> str:
    """Return a date as an HTML date input expects it."""
    return date_in_zone(env, _HTML, moment, "UTC")


@DATES.add_with_env("htmlDateInZone", takes=(ANY, TEXT))
def html_date_in_zone(env: Env, moment: Value, zone: str) -> str:
    """Return a date as an HTML date input expects it."""
    return date_in_zone(env, _HTML, moment, zone)


@DATES.add_with_env("dateInZone", "date_in_zone", takes=(TEXT, ANY, TEXT))
def date_in_zone(env: Env, layout: str, moment: Value, zone: str) -> str:
    """Return a date formatted by a layout; UTC is the only zone."""
    if zone not in _ZONES:
        raise Fault(
            f"the time zone {zone!r} is not available: zones are files of the host",
            hint='Use "UTC".',
        )
    return layouts.format_layout(_moment(env, moment), layout)


def _moment(env: Env, value: Value) -> Time:
    if isinstance(value, Time):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return _from_seconds(int(value))
    return now(env)


def _from_seconds(seconds: int) -> Time:
    try:
        return layouts.make_time(datetime.fromtimestamp(seconds, UTC))
    except (OverflowError, ValueError, OSError):
        raise Fault("a date lies outside of the years 1 to 9999") from None


@DATES.add("dateModify", "date_modify", takes=(TEXT, TIME))
def date_modify(change: str, moment: Time) -> Time:
    """Return a date shifted by a duration; unchanged if the duration is invalid."""
    nanoseconds = durations.parse_duration(change)
    return moment if nanoseconds is None else _shift(moment, nanoseconds)


@DATES.add("mustDateModify", "must_date_modify", takes=(TEXT, TIME))
def must_date_modify(change: str, moment: Time) -> Time:
    """Return a date shifted by a duration."""
    nanoseconds = durations.parse_duration(change)
    if nanoseconds is None:
        raise Fault(f"{change!r} is not a duration", hint='Write it like "1h30m".')
    return _shift(moment, nanoseconds)


def _shift(moment: Time, nanoseconds: int) -> Time:
    try:
        return layouts.shift(moment, nanoseconds)
    except ValueError:
        raise Fault("a date lies outside of the years 1 to 9999") from None


@DATES.add("toDate", takes=(TEXT, TEXT))
def to_date(layout: str, text: str) -> Time:
    """Return a date parsed by a layout; the zero time if the text does not match."""
    return layouts.parse_layout(layout, text) or layouts.ZERO_TIME


@DATES.add("mustToDate", takes=(TEXT, TEXT))
def must_to_date(layout: str, text: str) -> Time:
    """Return a date parsed by a layout."""
    parsed = layouts.parse_layout(layout, text)
    if parsed is None:
        raise Fault(f"{text!r} does not fit the layout {layout!r}")
    return parsed


@DATES.add("unixEpoch", takes=(TIME,))
def unix_epoch(moment: Time) -> str:
    """Return the seconds since 1970."""
    return str(_seconds(moment))


def _seconds(moment: Time) -> int:
    return (moment - _EPOCH) // timedelta(seconds=1)


@DATES.add("duration", takes=(ANY,))
def duration(value: Value) -> str:
    """Return seconds (an int64 or a string) formatted as a duration."""
    seconds = 0
    if isinstance(value, Int64):
        seconds = int(value)
    elif isinstance(value, str):
        digits = value[1:] if value[:1] in ("+", "-") else value
        if digits.isascii() and digits.isdigit() and len(digits) < len(str(MAX_INT)):
            seconds = int(value)
    return durations.format_duration(wrap_int64(seconds * durations.SECOND))


@DATES.add_with_env("durationRound", takes=(ANY,))
def duration_round(env: Env, value: Value) -> str:
    """Return a duration rounded to its largest unit."""
    nanoseconds = 0
    if isinstance(value, str):
        nanoseconds = durations.parse_duration(value) or 0
    elif isinstance(value, Int64):
        nanoseconds = int(value)
    elif isinstance(value, Time):
        nanoseconds = (_seconds(now(env)) - _seconds(value)) * durations.SECOND
    for unit, name in _ROUNDED:
        if abs(nanoseconds) > unit * durations.SECOND:
            return f"{abs(nanoseconds) // (unit * durations.SECOND)}{name}"
    return "0s"


@DATES.add_with_env("ago", takes=(ANY,))
def ago(env: Env, value: Value) -> str:
    """Return how long ago a time was."""
    past = _seconds(now(env)) - _seconds(_moment(env, value))
    return durations.format_duration(past * durations.SECOND)
