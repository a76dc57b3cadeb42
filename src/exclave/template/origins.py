"""Origins of values: paths below the root, computed without the values."""

from collections.abc import Sequence
from dataclasses import dataclass

from exclave.template.nodes import Operand, String

ELEMENT = "*"
"""A key that depends on the values: an element of a list, or a computed key."""

_MOST_ORIGINS = 64
_LONGEST_PATH = 32
"""The maximum depth that is followed; deeper keys count as their ancestor at this depth."""


class TooManyOrigins(Exception):  # noqa: N818 - it never leaves this package
    """A value has more possible origins than the analysis follows."""


@dataclass(frozen=True, slots=True)
class Origin:
    """A path below the root that a value can come from."""

    path: tuple[str, ...]
    optional: bool = False


Origins = tuple[Origin, ...]
"""The paths that a value can come from; empty if it does not come from the root."""

ROOT: Origins = (Origin(()),)


def below(origins: Origins, key: str, *, optional: bool = False) -> Origins:
    """Return the origins one key deeper."""
    return tuple(Origin(_extend(origin.path, (key,)), optional) for origin in origins)


def look_up(origins: Origins, keys: Sequence[Operand]) -> Origins:
    """Return the origins below keys that may be missing; a computed key can be any key."""
    for key in keys:
        name = key.value if isinstance(key, String) else ELEMENT
        origins = below(origins, name, optional=True)
    return origins


def follow(origins: Origins, names: tuple[str, ...]) -> Origins:
    """Return the origins below fields, which must exist."""
    if not names:
        return origins
    return tuple(Origin(_extend(origin.path, names)) for origin in origins)


def _extend(path: tuple[str, ...], names: tuple[str, ...]) -> tuple[str, ...]:
    longer = (*path, *names[: _LONGEST_PATH + 1])
    return longer if len(longer) <= _LONGEST_PATH else (*longer[: _LONGEST_PATH - 1], ELEMENT)


def join(*groups: Origins) -> Origins:
    """Return the union of origins, without duplicates."""
    joined = dict.fromkeys(origin for group in groups for origin in group)
    if len(joined) > _MOST_ORIGINS:
        raise TooManyOrigins
    return tuple(joined)
