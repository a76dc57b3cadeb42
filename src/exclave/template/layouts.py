"""Go's date layouts: a layout shows how Mon Jan 2 15:04:05 2006 would be written."""

import re
from datetime import UTC, datetime, timedelta

from exclave.template.problems import Fault
from exclave.template.values import Time

ZERO_TIME = Time(1, 1, 1, tzinfo=UTC)

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_ELEMENT = re.compile(
    r"January|Jan(?![a-z])|Monday|Mon(?![a-z])|MST|2006|__2|_2(?!006)|002|0[1-6]|15|PM|pm"
    r"|[-Z]07:00:00|[-Z]070000|[-Z]07:00|[-Z]0700|[-Z]07|[.,](?:0+|9+)(?![0-9])|[1-5]"
)
_DIGITS = re.compile(r"[0-9]+")
_NOON = 12
_LONGEST = 1000
_CENTURY_TURN = 69


def check_layout(layout: str) -> None:
    """Raise if a layout is too long."""
    if len(layout) > _LONGEST:
        raise Fault(f"a date layout is longer than {_LONGEST} characters")


def format_layout(time: Time, layout: str) -> str:
    """Return a time formatted by a layout."""
    check_layout(layout)
    return _ELEMENT.sub(lambda match: _format_element(time, match[0]), layout)


def _format_element(time: Time, element: str) -> str:
    hour12 = time.hour % _NOON or _NOON
    simple = {
        "January": _MONTHS[time.month - 1],
        "Jan": _MONTHS[time.month - 1][:3],
        "Monday": _DAYS[time.weekday()],
        "Mon": _DAYS[time.weekday()][:3],
        "MST": "UTC",
        "2006": f"{time.year:04d}",
        "06": f"{time.year % 100:02d}",
        "1": str(time.month),
        "01": f"{time.month:02d}",
        "2": str(time.day),
        "_2": f"{time.day:2d}",
        "02": f"{time.day:02d}",
        "__2": f"{time.timetuple().tm_yday:3d}",
        "002": f"{time.timetuple().tm_yday:03d}",
        "15": f"{time.hour:02d}",
        "3": str(hour12),
        "03": f"{hour12:02d}",
        "4": str(time.minute),
        "04": f"{time.minute:02d}",
        "5": str(time.second),
        "05": f"{time.second:02d}",
        "PM": "PM" if time.hour >= _NOON else "AM",
        "pm": "pm" if time.hour >= _NOON else "am",
    }
    if element in simple:
        return simple[element]
    if element.startswith("Z"):
        return "Z"
    if element.startswith("-"):
        return "+" + re.sub("[0-9]", "0", element[1:])
    digits = f"{time.microsecond:06d}000"[: len(element) - 1]
    if element[1] == "9":
        digits = digits.rstrip("0")
        return element[0] + digits if digits else ""
    return element[0] + digits.ljust(len(element) - 1, "0")


class _Reader:
    """Parses a time by a layout, from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.year, self.month, self.day = 1, 1, 1
        self.hour = self.minute = self.second = self.micro = 0
        self.afternoon: bool | None = None
        self.offset = 0
        self.year_day: int | None = None

    def expect(self, literal: str) -> None:
        if not self.text.startswith(literal):
            raise ValueError
        self.text = self.text[len(literal) :]

    def read(self, element: str) -> None:
        match element:
            case "2006":
                self.year = self._digits(4, 4)
            case "06":
                short = self._digits(2, 2)
                self.year = short + (1900 if short >= _CENTURY_TURN else 2000)
            case "January" | "Jan":
                self.month = self._name(_MONTHS, 3 if element == "Jan" else None) + 1
            case "Monday" | "Mon":
                self._name(_DAYS, 3 if element == "Mon" else None)
            case "01" | "1":
                self.month = self._digits(len(element), 2)
            case "02" | "2" | "_2":
                if element == "_2" and self.text.startswith(" "):
                    self.text = self.text[1:]
                self.day = self._digits(2 if element == "02" else 1, 2)
            case "002" | "__2":
                self.text = self.text.lstrip(" ") if element == "__2" else self.text
                self.year_day = self._digits(3 if element == "002" else 1, 3)
            case _:
                self._read_time(element)

    def _read_time(self, element: str) -> None:
        match element:
            case "15" | "3" | "03":
                self.hour = self._digits(2 if element == "03" else 1, 2)
            case "04" | "4":
                self.minute = self._digits(len(element), 2)
            case "05" | "5":
                self.second = self._digits(len(element), 2)
                self._fraction()
            case "PM" | "pm":
                marks = ("AM", "PM") if element == "PM" else ("am", "pm")
                if self.text[:2] not in marks:
                    raise ValueError
                self.afternoon = self.text[:2] == marks[1]
                self.text = self.text[2:]
            case "MST":
                if not self.text.startswith(("UTC", "GMT")):
                    raise ValueError
                self.text = self.text[3:]
            case _:
                self._read_rest(element)

    def _read_rest(self, element: str) -> None:
        if element[0] in ".,":
            if element[1] == "0" and self.text[:1] in (".", ","):
                self._fraction()
            return
        if element[0] == "Z" and self.text.startswith("Z"):
            self.text = self.text[1:]
            return
        pattern = re.sub("[0-9]{2}", "([0-9]{2})", element[1:])
        match = re.match("([+-])" + pattern, self.text)
        if match is None:
            raise ValueError
        hours, minutes, seconds = ([int(part) for part in match.groups()[1:]] + [0, 0])[:3]
        self.offset = (hours * 60 + minutes) * 60 + seconds
        self.offset *= -1 if match[1] == "-" else 1
        self.text = self.text[match.end() :]

    def _digits(self, least: int, most: int) -> int:
        match = _DIGITS.match(self.text[:most])
        if match is None or len(match[0]) < least:
            raise ValueError
        self.text = self.text[len(match[0]) :]
        return int(match[0])

    def _name(self, names: tuple[str, ...], short: int | None) -> int:
        for number, name in enumerate(names):
            wanted = name[:short]
            if self.text[: len(wanted)].lower() == wanted.lower():
                self.text = self.text[len(wanted) :]
                return number
        raise ValueError

    def _fraction(self) -> None:
        match = re.match(r"[.,]([0-9]+)", self.text)
        if match is not None:
            self.micro = int(match[1][:6].ljust(6, "0"))
            self.text = self.text[match.end() :]

    def finish(self) -> Time:
        if self.text:
            raise ValueError
        if self.afternoon is not None:
            self.hour = self.hour % _NOON + (_NOON if self.afternoon else 0)
        if self.year_day is not None:
            date = datetime(self.year, 1, 1, tzinfo=UTC) + timedelta(days=self.year_day - 1)
            self.month, self.day = date.month, date.day
        time = Time(
            self.year, self.month, self.day, self.hour, self.minute, self.second, self.micro, UTC
        )
        return shift(time, -self.offset * 1_000_000_000)


def parse_layout(layout: str, text: str) -> Time | None:
    """Return a time parsed by a layout; None if the text does not match."""
    check_layout(layout)
    reader = _Reader(text)
    at = 0
    try:
        for match in _ELEMENT.finditer(layout):
            reader.expect(layout[at : match.start()])
            reader.read(match[0])
            at = match.end()
        reader.expect(layout[at:])
        return reader.finish()
    except (ValueError, OverflowError):
        return None


def shift(time: Time, nanoseconds: int) -> Time:
    """Return a shifted time; raise ValueError outside of the years 1 to 9999."""
    try:
        moved = datetime.__add__(time, timedelta(microseconds=nanoseconds // 1000))
    except OverflowError:
        raise ValueError from None
    return make_time(moved)


def make_time(moment: datetime) -> Time:
    """Return a datetime as a template's time value, in UTC."""
    utc = moment.astimezone(UTC)
    return Time(
        utc.year, utc.month, utc.day, utc.hour, utc.minute, utc.second, utc.microsecond, UTC
    )
