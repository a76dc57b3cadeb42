"""The role that a job runs with, by the name that the app gives it."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, JsonValue, StringConstraints

from exclave.wire.model import Request

Operation = Literal[
    "provision", "reprovision", "deprovision", "deploy", "teardown", "trigger", "plan"
]
"""What a role is used for; `plan` is a look at what has drifted."""


class RoleWish(Request):
    """A role of the customer's Stack; which one that is in the cloud, only the runner knows."""

    name: Annotated[
        str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f]*$")
    ]
    operation: Operation


def _read_name(role: JsonValue) -> JsonValue:
    """Read the role of an action as control planes before protocol 1.2 write it: as a text."""
    if isinstance(role, str):
        return {"name": role, "operation": "trigger"} if role else None
    return role


def _is_absent(role: RoleWish | None) -> bool:
    return role is None


JobRole = Annotated[RoleWish | None, BeforeValidator(_read_name), Field(exclude_if=_is_absent)]
"""Left out where there is none, because runners before protocol 1.2 do not know it."""
