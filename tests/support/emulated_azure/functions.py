"""The functions of Azure Resource Manager that templates of ours use."""

import base64
import hashlib
import ipaddress
import json
import uuid
from functools import reduce
from typing import Any

from tests.support.emulated_azure.expressions import Functions


def make_guid(*parts: str) -> str:
    return str(uuid.UUID(hashlib.md5("|".join(parts).encode(), usedforsecurity=False).hexdigest()))


def make_unique(*parts: str) -> str:
    digest = hashlib.sha256("|".join(parts).encode()).digest()
    return base64.b32encode(digest).decode().lower()[:13]


def to_string(value: Any) -> str:
    """Return a value as Azure writes it: `True` for a flag, JSON for objects."""
    if isinstance(value, dict | list):
        return json.dumps(value, separators=(",", ":"))
    return str(value)


def concat(*parts: Any) -> str:
    return "".join(to_string(part) for part in parts)


def union(*objects: dict[str, Any]) -> dict[str, Any]:
    keys = [key for item in objects for key in item]
    # Azure merges objects that both have, and templates of ours do not rely on how.
    twice = [key for key in keys if keys.count(key) > 1]
    assert twice == [], twice
    return reduce(lambda left, right: {**left, **right}, objects)


def create_object(*parts: Any) -> dict[str, Any]:
    assert len(parts) % 2 == 0
    keys = parts[::2]
    assert len(set(keys)) == len(keys)
    return dict(zip(keys, parts[1::2], strict=True))


def cut(network: str, bits: int, index: int) -> str:
    return str(list(ipaddress.ip_network(network).subnets(new_prefix=bits))[index])


def join_id(prefix: str, type_: str, names: tuple[str, ...]) -> str:
    provider, *kinds = type_.split("/")
    assert len(kinds) == len(names), (type_, names)
    path = "".join(f"/{kind}/{name}" for kind, name in zip(kinds, names, strict=True))
    return f"{prefix}/providers/{provider}{path}"


PURE: Functions = {
    "and": lambda *items: all(items),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "cidrSubnet": cut,
    "concat": concat,
    "createArray": lambda *items: list(items),
    "createObject": create_object,
    "empty": lambda value: not value,
    "equals": lambda left, right: left == right,
    "false": lambda: False,
    "first": lambda items: items[0],
    "format": lambda text, *items: text.format(*items),
    "guid": make_guid,
    "join": lambda items, mark: mark.join(items),
    "last": lambda items: items[-1],
    "map": lambda items, function: [function(item) for item in items],
    "not": lambda value: not value,
    "null": lambda: None,
    "or": lambda *items: any(items),
    "split": lambda text, mark: text.split(mark),
    "string": to_string,
    "toLower": lambda text: text.lower(),
    "true": lambda: True,
    "union": union,
    "uniqueString": make_unique,
}
"""Functions whose value depends on nothing but their arguments."""
