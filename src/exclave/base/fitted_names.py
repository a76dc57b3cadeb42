"""Names that fit a limit of a cloud; the Stack and its runner cut them alike."""

import hashlib

_SUFFIX = 8
"""How many characters of the hash a name that was cut ends with."""


def fit_name(name: str, limit: int) -> str:
    """Return a name of at most `limit` characters: its beginning and a hash if it is longer."""
    if len(name) <= limit:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_SUFFIX]
    return f"{name[: limit - _SUFFIX - 1]}-{digest}"
