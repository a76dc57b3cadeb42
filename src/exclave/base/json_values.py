"""Types of JSON documents whose shape the platform does not define, and how they are narrowed."""

import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""Any JSON value. A reader narrows it with `isinstance` before it uses it."""
JsonObject: TypeAlias = Mapping[str, Json]
"""A JSON object. A document of known shape has a class of its own instead."""


def parse_object(data: str | bytes, what: str) -> dict[str, Json]:
    """Return a JSON document that has to be an object; `ValueError` says that `what` is not one."""
    try:
        value: Json = json.loads(data)
    except (ValueError, RecursionError) as error:
        message = f"{what} is not valid JSON"
        raise ValueError(message) from error
    if not isinstance(value, dict):
        message = f"{what} is not a JSON object"
        raise ValueError(message)  # noqa: TRY004 - like text that is not JSON: a wrong value
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
