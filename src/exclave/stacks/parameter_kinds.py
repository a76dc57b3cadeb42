"""What a customer fills in: headings, kinds of values, and which kind an input of an app is."""

from enum import StrEnum
from typing import Final

from exclave.stacks.model import InputModel

_TRUE: Final = frozenset({"true", "1", "yes", "on"})


class Group(StrEnum):
    """The heading that a parameter stands under."""

    RUNNER = "Runner"
    NETWORK = "Network"
    ROLES = "Roles"
    SECRETS = "Secrets"
    INPUTS = "Inputs"


class ParameterKind(StrEnum):
    """What a value of the customer is."""

    TEXT = "text"
    FLAG = "flag"
    NUMBER = "number"
    LIST = "list"


def find_input_kind(item: InputModel) -> ParameterKind:
    """Return the kind of an input; a number that may be empty is a text."""
    if item.sensitive:
        return ParameterKind.TEXT
    match item.type:
        case "bool" | "boolean":
            return ParameterKind.FLAG
        case "list":
            return ParameterKind.LIST
        case "number" if item.default is None:
            return ParameterKind.NUMBER if item.required else ParameterKind.TEXT
        case "number" if _is_number(item.default or ""):
            return ParameterKind.NUMBER
        case _:
            return ParameterKind.TEXT


def write_flag(text: str | None) -> str:
    """Return how a parameter says what an app means by a text: `true` or `false`."""
    return "true" if (text or "").strip().lower() in _TRUE else "false"


def _is_number(text: str) -> bool:
    return text.removeprefix("-").replace(".", "", 1).isdecimal() and text.isascii()
