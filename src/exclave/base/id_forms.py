"""The form of ids."""

from typing import Final

INSTALL: Final = "inst"
"""Begins the id of an install. Sorts after `ins_`, so that new installs come after old ones."""
ID_PATTERN: Final = r"(?:[a-z]{2,4}_|inst)[0-9a-z]{26}"
"""An id: `job_01k9…`, `inst01k9…`. Installs that were made by earlier versions have `ins_01k9…`."""


def is_install_id(text: str) -> bool:
    """Return whether an id is that of an install."""
    return text.startswith((INSTALL, "ins_"))
