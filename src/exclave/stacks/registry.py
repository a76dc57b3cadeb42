"""The Stacks that exist, by cloud."""

from collections.abc import Mapping

from exclave.base.errors import Conflict
from exclave.domain.stacks import Cloud
from exclave.stacks.base import Stack
from exclave.stacks.local import LocalStack

STACKS: Mapping[Cloud, Stack] = {Cloud.LOCAL: LocalStack()}


def get_stack(cloud: str, *, owner: str) -> Stack:
    """Return the Stack of a cloud.

    Raise `Conflict` if there is none; the error names `owner`, the app or install that needs it,
    and the clouds that have one.
    """
    for name, stack in STACKS.items():
        if name == cloud:
            return stack
    clouds = ", ".join(f"`{name}`" for name in STACKS)
    raise Conflict(
        f"{owner} is for `{cloud}`, and there is no Stack for that cloud yet",
        hint=f"Clouds with a Stack: {clouds}."
        " Set `runner_type` in the app's runner.toml to one of them and sync the app again.",
    )
