"""Readable plans, validated when a runner uploads them."""

import json
from collections.abc import Callable

from exclave.domain.resource_addresses import read_resource_address
from exclave.domain.tf_addresses import read_name

_READERS: tuple[tuple[str, str, Callable[[str], str]], ...] = (
    ("resources", "address", read_resource_address),
    ("resources", "previous", read_resource_address),
    ("drift", "address", read_resource_address),
    ("drift", "previous", read_resource_address),
    ("outputs", "name", read_name),
)


def tidy_plan(data: bytes) -> bytes:
    """Return a plan document with addresses and names that are what they say, or say otherwise.

    `ValueError` if it is no document at all. A plan of an honest runner comes back as it is.
    """
    try:
        document = json.loads(data, parse_constant=_refuse_number)
    except RecursionError as error:
        message = "it is nested too deeply"
        raise ValueError(message) from error
    if not isinstance(document, dict):
        message = "it is not an object"
        raise ValueError(message)  # noqa: TRY004 - the caller knows one kind of error
    changed = [_read(document.get(part), key, reader) for part, key, reader in _READERS]
    return json.dumps(document, ensure_ascii=False).encode() if any(changed) else data


def _read(items: object, key: str, reader: Callable[[str], str]) -> bool:
    """Replace each item's text by what `reader` returns; return whether one changed."""
    changed = False
    for item in items if isinstance(items, list) else ():
        text = item.get(key) if isinstance(item, dict) else None
        if isinstance(text, str) and (read := reader(text)) != text:
            item[key] = read
            changed = True
    return changed


def _refuse_number(text: str) -> None:
    message = f"{text} is not a number"
    raise ValueError(message)
