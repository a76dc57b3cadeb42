"""The ids of Azure's built-in roles, which are the same in every tenant."""

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
READER = "Reader"
SECRETS_READER = "Key Vault Secrets User"
SECRETS_OFFICER = "Key Vault Secrets Officer"
IMAGES_WRITER = "AcrPush"
METRICS_PUBLISHER = "Monitoring Metrics Publisher"


def find_role_id(name: str) -> str:
    """Return the id of a built-in role by its name; an id stays as it is; empty if unknown."""
    low = name.strip().lower()
    return low if _ID.fullmatch(low) else _list_role_ids().get(low, "")


@cache
def _list_role_ids() -> Mapping[str, str]:
    """Return the known ids by the names of their roles in small letters."""
    return {name.lower(): role_id for role_id, name in list_role_names().items()}


@cache
def list_role_names() -> Mapping[str, str]:
    """Return the names of the known roles by their ids."""
    text = resources.files(__package__).joinpath("built_in_roles.txt").read_text(encoding="utf-8")
    pairs = (line.partition(" ") for line in text.splitlines())
    return {role_id: name for role_id, _, name in pairs}
