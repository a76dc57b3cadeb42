"""Values and paths of a plan as people see them: masked, shortened, written as text."""

import json
import re
from collections.abc import Mapping, Sequence

from exclave.base.json_values import Json
from exclave.runner.logs.masking import Mask, mask_number
from exclave.wire.jobs import JsonValue

MOST_ATTRIBUTES = 500
"""Most attributes that a plan lists of one resource."""
_MOST_CHARS = 4000
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def mask_value(value: Json, mask: Mask) -> JsonValue:
    """Return a value with its secrets masked and long texts shortened."""
    match value:
        case str():
            text = mask(value)
            cut = len(text) - _MOST_CHARS
            return text if cut <= 0 else f"{text[:_MOST_CHARS]}… ({cut} more characters)"
        case Mapping():
            return {mask(key): mask_value(part, mask) for key, part in value.items()}
        case Sequence():
            return [mask_value(part, mask) for part in value]
        case bool() | None:
            return value
        case _:
            return mask_number(value, mask)


def write_path(path: Sequence[Json]) -> str:
    """Return a path such as `spec.containers["web"].image`."""
    text = ""
    for key in path:
        if isinstance(key, str) and _PLAIN_KEY.fullmatch(key):
            text += f".{key}" if text else key
        else:
            text += f"[{json.dumps(key, ensure_ascii=False)}]"
    return text
