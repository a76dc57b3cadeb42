"""The actions of AWS by service and access level."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import translate
from functools import cache, lru_cache
from importlib import resources
from typing import Final

from exclave.stacks.reporting.rights import Level

_TABLE: Final = "aws_actions.txt"


@dataclass(frozen=True, slots=True)
class ActionTable:
    """All known actions."""

    levels: Mapping[str, Level]
    """By action, such as `s3:GetObject`."""
    titles: Mapping[str, str]
    """The names of services, by prefix."""
    services: Mapping[str, tuple[str, ...]]
    """The actions of a service, by its prefix in lower case."""

    @property
    def everything(self) -> frozenset[str]:
        """All actions."""
        return frozenset(self.levels)


@cache
def load_actions() -> ActionTable:
    """Return the table; it is read once."""
    text = resources.files("exclave.stacks.reporting").joinpath(_TABLE).read_text(encoding="utf-8")
    levels: dict[str, Level] = {}
    titles: dict[str, str] = {}
    services: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        prefix, title, level, names = line.split("|")
        titles[prefix] = title
        for name in names.split():
            action = f"{prefix}:{name}"
            levels[action] = Level(level.lower())
            services.setdefault(prefix.lower(), []).append(action)
    grouped = {prefix: tuple(actions) for prefix, actions in services.items()}
    return ActionTable(levels, titles, grouped)


@lru_cache(maxsize=256)
def expand_action(pattern: str) -> frozenset[str]:
    """Return the known actions that a pattern of a policy means: `s3:Get*`, `*`."""
    table = load_actions()
    if pattern == "*":
        return table.everything
    service, _, _ = pattern.lower().partition(":")
    is_exact = not set("*?") & set(service)
    near = table.services.get(service, ()) if is_exact else table.levels
    # IAM has `*` and `?` only. What `fnmatch` makes of them does not get slow on purpose.
    matches = re.compile(translate(pattern.replace("[", "[[]")), re.IGNORECASE).match
    return frozenset(action for action in near if matches(action))
