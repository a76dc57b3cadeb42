"""Validate the outputs that a job reports: a runner may send anything."""

from collections.abc import Sequence
from typing import ClassVar

from exclave.base.errors import Kind, Problem
from exclave.base.json_values import JsonObject
from exclave.domain.workflows import WorkflowKey
from exclave.storage import steps
from exclave.storage.engine.database import Tx

MOST_BYTES = 2 * 1024 * 1024
"""Of all outputs that one job is given."""
_FEW = 4
"""Steps whose outputs are loaded unmeasured: a body has a limit of its own."""
_LARGEST = 2**63 - 1
_LONGEST = 200


class OutputsInvalid(Problem):
    """A job succeeded, but its outputs are not those of a job of its kind."""

    kind: ClassVar = Kind.INVALID
    code: ClassVar = "outputs_invalid"
    hint: ClassVar = "Update the runner: its program does not fit this control plane."


def load_outputs(tx: Tx, key: WorkflowKey, indexes: Sequence[int]) -> dict[str, JsonObject]:
    """Load the outputs of some steps, by step name, unless they are too large together."""
    if len(indexes) > _FEW and steps.measure_outputs(tx, key, indexes) > MOST_BYTES:
        raise OutputsInvalid(
            f"the outputs of the {len(indexes)} steps before are larger than {MOST_BYTES} bytes",
            hint="Need fewer steps, or hand on less.",
        )
    return steps.load_outputs(tx, key, indexes)


def read_table(outputs: JsonObject, name: str) -> JsonObject:
    """Read a table; one that is missing is empty."""
    table = outputs.get(name)
    if table is None:
        return {}
    if not isinstance(table, dict):
        raise OutputsInvalid(f"the output `{name}` is not a table")
    return table


def read_count(outputs: JsonObject, name: str) -> int:
    """Read a whole number; one that is missing is 0."""
    count = outputs.get(name)
    if count is None:
        return 0
    if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= _LARGEST:
        raise OutputsInvalid(f"the output `{name}` is not a count")
    return count


def read_word(outputs: JsonObject, name: str) -> str:
    """Read a short text: a digest, a commit; one that is missing is empty."""
    word = outputs.get(name)
    if word is None:
        return ""
    if not isinstance(word, str) or len(word) > _LONGEST:
        raise OutputsInvalid(f"the output `{name}` is not a short text")
    return word
