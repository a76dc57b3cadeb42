"""Types of JSON documents whose shape the platform does not define: outputs, states, labels."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""Any JSON value. A reader narrows it with `isinstance` before it uses it."""
JsonObject: TypeAlias = Mapping[str, Json]
"""A JSON object. A document of known shape has a class of its own instead."""
