"""The names of states."""

from exclave.domain.lanes import SANDBOX, component_lane


def name_workspace(component: str) -> str:
    """Return the name of a part's state: that of the lane that guards it."""
    return component_lane(component) if component else SANDBOX
