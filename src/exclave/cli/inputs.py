"""Parsing of arguments and files into requests; all errors are reported at once."""

import json
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from exclave.base.errors import InvalidInput, Problem

Model = TypeVar("Model", bound=BaseModel)

_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhd])")
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_STDIN = "-"


def build(model: type[Model], **fields: object) -> Model:
    """Return a request built from arguments."""
    return check(model, fields, "")


def check(model: type[Model], fields: object, source: str) -> Model:
    """Return a request built from data; raise with every error and where it is."""
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        mistakes = [
            f"{_show_place(mistake['loc'])}{_show_mistake(mistake)}" for mistake in error.errors()
        ]
    except Problem as problem:
        mistakes = [problem.message]
    where = f"{source}: " if source else ""
    listed = (
        mistakes[0] if len(mistakes) == 1 else "".join(f"\n  - {mistake}" for mistake in mistakes)
    )
    raise InvalidInput(f"{where}{listed}", mistakes=mistakes)


def read_document(name: str) -> Mapping[str, object]:
    """Return the object in a JSON or TOML file; `-` reads stdin in either format."""
    label = "stdin" if name == _STDIN else name
    try:
        text = sys.stdin.read() if name == _STDIN else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InvalidInput(f"cannot read {label}: {reason}") from error
    is_toml = name.endswith(".toml") or (name == _STDIN and not text.lstrip().startswith("{"))
    try:
        document = tomllib.loads(text) if is_toml else json.loads(text)
    except ValueError as error:
        language = "TOML" if is_toml else "JSON"
        raise InvalidInput(f"{label} is not valid {language}: {error}") from error
    if not isinstance(document, dict):
        raise InvalidInput(f"{label} does not hold an object")
    return document


def read_pairs(pairs: Sequence[str], option: str) -> dict[str, str]:
    """Parse repeated `key=value` options."""
    values: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise InvalidInput(f"`{pair}` is not a key=value", hint=f"Write {option} key=value.")
        if key in values:
            raise InvalidInput(f"`{key}` is given twice")
        values[key] = value
    return values


def read_duration(text: str) -> float:
    """Parse `90d`, `12h`, `30m` or `45s`; return seconds."""
    match = _DURATION.fullmatch(text)
    if not match:
        raise InvalidInput(f"`{text}` is not a duration", hint="Write 90d, 12h, 30m or 45s.")
    return float(match[1]) * _UNITS[match[2]]


def _show_place(location: Sequence[int | str]) -> str:
    text = ""
    for key in location:
        text += f"[{key}]" if isinstance(key, int) else f".{key}"
    return f"{text.lstrip('.')}: " if text else ""


def _show_mistake(mistake: ErrorDetails) -> str:
    message = mistake["msg"].removeprefix("Value error, ")
    given = mistake.get("input")
    shown = f" (given: {given!r})" if isinstance(given, str | int | float) else ""
    return f"{message}{shown}"
