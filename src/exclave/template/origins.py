"""Where a value can come from: paths below the root, followed without knowing the values."""

from collections.abc import Sequence
from dataclasses import dataclass

from exclave.template.nodes import Operand, String

ELEMENT = "*"
"""A key that only the values decide: an element of a list, or a computed key."""

_MOST_ORIGINS = 64
_LONGEST_PATH = 32
"""Keys that are followed; what is deeper counts as a part of what is there."""


class TooTangled(Exception):  # noqa: N818 - it never leaves this room
    """A template cannot be followed to its end."""


@dataclass(frozen=True, slots=True)
class Origin:
    """A place below the root that a value can come from."""

    path: tuple[str, ...]
    optional: bool = False


Origins = tuple[Origin, ...]
"""Where a value can come from; nothing for values that do not come from the root."""

ROOT: Origins = (Origin(()),)


def below(origins: Origins, key: str, *, optional: bool = False) -> Origins:
    """Go one key down."""
    return tuple(Origin(_extend(origin.path, (key,)), optional) for origin in origins)


def look_up(origins: Origins, keys: Sequence[Operand]) -> Origins:
    """Follow keys that may be missing; a key that is computed can be any."""
    for key in keys:
        name = key.value if isinstance(key, String) else ELEMENT
        origins = below(origins, name, optional=True)
    return origins


def follow(origins: Origins, names: tuple[str, ...]) -> Origins:
    """Follow fields, which have to exist."""
    if not names:
        return origins
    return tuple(Origin(_extend(origin.path, names)) for origin in origins)


def _extend(path: tuple[str, ...], names: tuple[str, ...]) -> tuple[str, ...]:
    longer = (*path, *names[: _LONGEST_PATH + 1])
    return longer if len(longer) <= _LONGEST_PATH else (*longer[: _LONGEST_PATH - 1], ELEMENT)


def join(*groups: Origins) -> Origins:
    """Put together where a value can come from, without repetitions."""
    joined = dict.fromkeys(origin for group in groups for origin in group)
    if len(joined) > _MOST_ORIGINS:
        raise TooTangled
    return tuple(joined)
