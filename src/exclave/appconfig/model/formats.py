"""Formats of strings: durations, schedules, versions, names, URLs."""

import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from exclave.appconfig.diagnostics.codes import Code

HOUR: Final = 3600.0
_UNITS: Mapping[str, float] = {
    "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600,
}  # fmt: skip
_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_CRON_FIELDS = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of the month", 1, 31, ()),
    (
        "month",
        1,
        12,
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    ),
    ("day of the week", 0, 7, ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]),
)
_CRON_ZONE = re.compile(r"^(?:CRON_)?TZ=\S+\s+")
_CRON_WORDS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_NAME = re.compile(r"[a-z0-9_{}.]+")
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)(?:[-+][0-9A-Za-z.+-]+)?")
_OLDEST_TERRAFORM = (1, 8, 0)
LONGEST_RELEASE: Final = 53
"""What Helm allows, of which it makes names of objects."""
RESERVED = "nuon_component_override_v1_"


@dataclass(frozen=True, slots=True)
class Flaw:
    """Why a string does not match its format."""

    message: str
    hint: str
    warning: bool = False
    code: Code = Code.BAD_FORMAT


def parse_duration(text: str) -> float | None:
    """Return a Go duration (`1h30m`, `90s`) in seconds; None if it is not one."""
    body = text.removeprefix("+")
    if body == "0":
        return 0.0
    if not body or _DURATION.sub("", body):
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in _DURATION.findall(body))


def check_duration(text: str) -> Flaw | None:
    """Check a duration of at most an hour."""
    seconds = parse_duration(text)
    if seconds is None:
        return Flaw(
            f"`{text}` is not a duration", "Write a number and its unit: `30s`, `5m`, `1h`."
        )
    if seconds > HOUR:
        return Flaw(f"`{text}` is longer than an hour", "Write at most `1h`.")
    return None


def check_cron(text: str) -> Flaw | None:
    """Check a cron schedule of five fields."""
    if text in _CRON_WORDS or (text.startswith("@every ") and parse_duration(text[7:])):
        return None
    fields = _CRON_ZONE.sub("", text).split()
    if len(fields) != len(_CRON_FIELDS):
        message = f"`{text}` has {len(fields)} fields, and a schedule has 5"
        return Flaw(message, "Write minute, hour, day, month and weekday: `0 6 * * 1-5`.")
    for field, (what, low, high, words) in zip(fields, _CRON_FIELDS, strict=True):
        if not all(_is_cron_part(part, low, high, words) for part in field.split(",")):
            return Flaw(f"`{field}` is not a {what}", f"Use {low} to {high}, `*`, `*/5` or `1-5`.")
    return None


def _is_cron_part(part: str, low: int, high: int, words: object) -> bool:
    span, slash, step = part.partition("/")
    if slash and not (step.isascii() and step.isdigit() and int(step[:9]) > 0):
        return False
    if span in {"*", "?"}:
        return True
    ends = [_read_cron_number(end, words) for end in span.split("-")]
    if len(ends) > 2:  # noqa: PLR2004 - a range has two ends
        return False
    return all(end is not None and low <= end <= high for end in ends) and (
        (ends[0] or 0) <= (ends[-1] or 0)
    )


def _read_cron_number(text: str, words: object) -> int | None:
    if isinstance(words, list) and text.lower() in words:
        return words.index(text.lower()) + (len(words) == 12)  # noqa: PLR2004 - months count from 1
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else None  # noqa: PLR2004


def check_name(text: str) -> Flaw | None:
    """Check the name of a component, an input or a secret."""
    if text.startswith(RESERVED):
        return Flaw(f"names that start with `{RESERVED}` are reserved", "", code=Code.BAD_NAME)
    if _NAME.fullmatch(text):
        return None
    usable = re.sub(r"[^a-z0-9_]+", "_", text.lower()).strip("_") or "name"
    if _NAME.fullmatch(text.replace("-", "_")):
        hint = f"Write `{usable}`: a hyphen needs `index` in templates, and other tools refuse it."
        return Flaw(f"the name `{text}` has a hyphen", hint, warning=True, code=Code.DOUBTFUL_NAME)
    hint = f"Use a-z, 0-9 and `_`: `{usable}`."
    return Flaw(f"`{text}` is not a name", hint, code=Code.BAD_NAME)


def check_key(text: str) -> Flaw | None:
    """Check a name that templates can read."""
    if re.fullmatch(r"[A-Za-z_]\w*", text):
        return None
    hint = "Use letters, digits and `_`; other names need `index` in templates."
    message = f"`{text}` cannot be read with a dot"
    return Flaw(message, hint, warning=True, code=Code.DOUBTFUL_NAME)


def check_release(text: str) -> Flaw | None:
    """Check the name of a Helm release."""
    if not _LABEL.fullmatch(text):
        hint = "Use a-z, 0-9 and `-`, with a letter or digit at both ends."
        return Flaw(f"`{text}` is not a release name", hint, code=Code.BAD_NAME)
    if len(text) > LONGEST_RELEASE:
        message = f"`{text}` has {len(text)} characters, and Helm allows {LONGEST_RELEASE}"
        return Flaw(message, "Choose a shorter name.", code=Code.BAD_NAME)
    if len(text) < 5:  # noqa: PLR2004 - a limit of the format
        message = f"`{text}` has {len(text)} characters; a release name has 5 at least"
        return Flaw(message, "Other tools refuse it.", warning=True, code=Code.DOUBTFUL_NAME)
    return None


def check_version(text: str) -> Flaw | None:
    """Check a version of three numbers."""
    if _VERSION.fullmatch(text) or not text:
        return None
    hint = "Write all three numbers, as in `1.11.3`."
    return Flaw(f"`{text}` is not an exact version", hint, warning=True, code=Code.DOUBTFUL_FORMAT)


def check_terraform_version(text: str) -> Flaw | None:
    """Check a version of Terraform for components."""
    match = _VERSION.fullmatch(text)
    if match and tuple(int(part[:9]) for part in match.groups()) < _OLDEST_TERRAFORM:
        message = f"Terraform {text} is older than 1.8.0"
        return Flaw(message, "Use 1.8.0 or newer.", warning=True, code=Code.DOUBTFUL_FORMAT)
    return check_version(text)


def check_url(text: str) -> Flaw | None:
    """Check a URL."""
    if re.match(r"[a-z][a-z0-9+.-]*://[^\s/]", text):
        return None
    hint = "Write it with its scheme, as in `https://example.com`."
    return Flaw(f"`{text}` is not a URL", hint, warning=True, code=Code.DOUBTFUL_FORMAT)


def check_repo(text: str) -> Flaw | None:
    """Check the name of a repository."""
    if "/" in text or ":" in text or text == "." or not text.isascii():
        return None
    hint = f"Write `owner/{text}`, or a full https URL."
    return Flaw(f"`{text}` has no owner", hint, warning=True, code=Code.DOUBTFUL_FORMAT)


def check_colour(text: str) -> Flaw | None:
    """Check a hex colour."""
    if re.fullmatch(r"#?(?:[0-9a-fA-F]{3,4}|[0-9a-fA-F]{6}|[0-9a-fA-F]{8})", text):
        return None
    hint = "Write it as `#ff8800`."
    return Flaw(f"`{text}` is not a hex colour", hint, warning=True, code=Code.DOUBTFUL_FORMAT)


def check_regex(text: str) -> Flaw | None:
    """Check a regular expression."""
    try:
        with warnings.catch_warnings(action="ignore"):
            re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        message = f"`{text}` is probably not a regular expression: {error}"
        hint = "It is written in RE2 syntax."
        return Flaw(message, hint, warning=True, code=Code.DOUBTFUL_FORMAT)
    return None


FORMATS: Mapping[str, Callable[[str], Flaw | None]] = {
    "duration": check_duration,
    "cron": check_cron,
    "name": check_name,
    "key": check_key,
    "release": check_release,
    "version": check_version,
    "terraform_version": check_terraform_version,
    "url": check_url,
    "colour": check_colour,
    "repo": check_repo,
    "regex": check_regex,
}
