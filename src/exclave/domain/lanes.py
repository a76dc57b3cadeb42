"""Lanes: the parts of an install that must not be worked on twice at once."""

import re
from collections.abc import Iterable
from enum import StrEnum

from exclave.base.errors import InvalidInput

SANDBOX = "sandbox"
"""The lane that excludes all others of its install."""
SECRETS = "secrets"
"""The lane of the customer's secrets in the cluster."""
POLICIES = "policies"
"""The lane of the app's policies in the cluster."""

_NAME = re.compile(r"sandbox|secrets|policies|(?:component|action):[a-z0-9][a-z0-9_-]{0,62}")
_ODD = re.compile(r"[^a-z0-9_-]+")


class LaneState(StrEnum):
    """Whether a lane may be taken."""

    FREE = "free"
    BUSY = "busy"
    NEEDS_RECONCILE = "needs_reconcile"


def check_lane(name: str) -> str:
    """Accept a well-formed lane name."""
    if not _NAME.fullmatch(name):
        message = f"`{name}` is not a lane"
        raise InvalidInput(
            message, hint="Use `sandbox`, `component:<name>` or `action:<name>`.", lane=name
        )
    return name


def slug(name: str) -> str:
    """Return a name in the form that names of steps and lanes allow."""
    return _ODD.sub("-", name.lower()).strip("-") or "x"


def component_lane(name: str) -> str:
    """Return the name of the lane that guards a component."""
    return f"component:{slug(name)}"


def conflict(lane: str, other: str) -> bool:
    """Return whether two lanes of one install exclude each other."""
    return lane == other or SANDBOX in {lane, other}


def conflicts_any(lanes: Iterable[str], taken: Iterable[str]) -> bool:
    """Return whether any wanted lane is excluded by any taken one."""
    wanted, held = frozenset(lanes), frozenset(taken)
    if not wanted or not held:
        return False
    return SANDBOX in wanted or SANDBOX in held or not wanted.isdisjoint(held)
