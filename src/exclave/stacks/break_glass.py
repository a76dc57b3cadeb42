"""How a customer allows the roles for emergencies, and ends that again."""

from collections.abc import Callable, Iterator
from typing import Final

from exclave.domain.stacks import RoleKind
from exclave.stacks.base import Step
from exclave.stacks.model import RoleModel, StackModel
from exclave.stacks.shell import Inner

PAST: Final = "2000-01-01T00:00:00Z"
"""The end of break-glass as long as the customer has chosen none."""
TIME: Final = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"
_HOW: Final = (
    "It works until the time in the command, in four hours. On macOS write"
    " `date -u -v+4H +%Y-%m-%dT%H:%M:%SZ` there."
)


def in_four_hours(before: str = "") -> Inner:
    """Return the time in four hours, as an argument that begins with a text."""
    return Inner(("date", "-u", "-d", "+4 hours", "+%Y-%m-%dT%H:%M:%SZ"), before)


def list_break_glass_steps(
    model: StackModel,
    allow: Callable[[RoleModel], tuple[str, ...]],
    end: tuple[str, ...],
    after: str,
) -> Iterator[Step]:
    """Yield a step for each role, and one that ends all; `after` says what is left without it."""
    roles = model.list_roles(RoleKind.BREAK_GLASS)
    for role in roles:
        yield Step(f"Switch on the break-glass role {role.title or role.name}", _HOW, allow(role))
    if roles:
        yield Step("End break-glass", after, end)
