"""Suggestions of the closest existing name ("did you mean …")."""

import difflib
from collections.abc import Iterable

_SHOWN = 10


def suggest(name: str, known: Iterable[str]) -> str:
    """Return a hint with the closest known name, or with all known names."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, 1)
    if near:
        return f"Did you mean `{near[0]}`?"
    if not names:
        return "There are none."
    more = " …" if len(names) > _SHOWN else ""
    return f"There are: {', '.join(names[:_SHOWN])}{more}"
