"""Names in the languages of Stacks: cases of identifiers, and texts that fit a cloud's limits."""

import re

from exclave.base.fitted_names import fit_name as fit_name

_WORDS = re.compile(r"[^A-Za-z0-9]+")
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def write_camel(text: str) -> str:
    """Return a text as an identifier in upper camel case, `db_password` as `DbPassword`."""
    return "".join(word[:1].upper() + word[1:] for word in _WORDS.split(text) if word)


def write_snake(text: str) -> str:
    """Return a text as an identifier in snake case, `DbPassword` as `db_password`."""
    return "_".join(word for word in _WORDS.split(_CAPITAL.sub("_", text).lower()) if word)
