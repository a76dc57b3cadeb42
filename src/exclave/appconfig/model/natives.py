"""Conversion of TOML values to strings, where the format accepts strings only."""

import json
from datetime import date, datetime, time

Native = str | int | float | bool | datetime | date | time | list["Native"] | dict[str, "Native"]


def write_text(value: object) -> str:
    """Return a value as a string.

    Booleans are `true` and `false`, numbers are decimal, times are ISO 8601, and lists and tables
    are compact JSON with their keys in order: what Terraform, Helm and shell scripts can read.
    """
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case list() | dict():
            return json.dumps(
                _plain(value), ensure_ascii=False, separators=(",", ":"), sort_keys=True
            )
        case datetime() | date() | time():
            return value.isoformat()
        case _:
            raise TypeError(f"TOML has no {type(value).__name__}")


def name_type(value: object) -> str:
    """Return the name of a TOML value's type."""
    match value:
        case str():
            return "text"
        case bool():
            return "a switch"
        case int() | float():
            return "a number"
        case list():
            return "a list"
        case dict():
            return "a table"
        case _:
            return "a time"


def _plain(value: object) -> object:
    match value:
        case list():
            return [_plain(element) for element in value]
        case dict():
            return {name: _plain(element) for name, element in value.items()}
        case str() | bool() | int() | float():
            return value
        case _:
            return write_text(value)
