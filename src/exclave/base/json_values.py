"""Types of JSON documents whose shape the platform does not define, and how they are narrowed."""

import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""Any JSON value. A reader narrows it with `isinstance` before it uses it."""
JsonObject: TypeAlias = Mapping[str, Json]
"""A JSON object. A document of known shape has a class of its own instead."""


def parse_object(data: str | bytes, what: str) -> JsonObject:
    """Return a JSON document that has to be an object; `ValueError` says that `what` is not one."""
    try:
        value: Json = json.loads(data)
    except (ValueError, RecursionError) as error:
        message = f"{what} is not valid JSON"
        raise ValueError(message) from error
    return require_object(value, what)


def require_object(value: Json, what: str) -> JsonObject:
    """Return a value that has to be an object; `ValueError` says that `what` is not one."""
    if not isinstance(value, Mapping):
        raise _refuse(what, "an object")
    return value


def require_list(value: Json, what: str) -> Sequence[Json]:
    """Return a value that has to be a list; `ValueError` says that `what` is not one."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise _refuse(what, "a list")
    return value


def require_text(value: Json, what: str) -> str:
    """Return a value that has to be a text; `ValueError` says that `what` is not one."""
    if not isinstance(value, str):
        raise _refuse(what, "a text")
    return value


def object_or_empty(value: Json) -> JsonObject:
    """Return the value if it is an object, otherwise an empty one."""
    return value if isinstance(value, Mapping) else {}


def list_or_empty(value: Json) -> Sequence[Json]:
    """Return the value if it is a list, otherwise an empty one."""
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def text_or_empty(value: Json) -> str:
    """Return the value if it is a text, otherwise an empty one."""
    return value if isinstance(value, str) else ""


def _refuse(what: str, wanted: str) -> ValueError:
    return ValueError(f"{what} is not {wanted}")
