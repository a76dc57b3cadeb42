"""Outputs of a module as the control plane may have them: sensitive ones are placeholders."""

from collections.abc import Callable, Mapping

from exclave.runner.plans.shown_values import mask_value
from exclave.runner.terraform.state_document import Output
from exclave.wire.jobs import JsonValue


def split_outputs(
    outputs: Mapping[str, Output], workspace: str, mask: Callable[[str], str]
) -> tuple[dict[str, JsonValue], list[str]]:
    """Return the public outputs, and the names of those whose values stay on the runner."""
    public_values: dict[str, JsonValue] = {}
    hidden: list[str] = []
    for name, output in sorted(outputs.items()):
        if output.sensitive:
            public_values[name] = f"((exclave:output:{workspace}:{name}))"
            hidden.append(name)
        else:
            public_values[name] = mask_value(output.value, mask)
    return public_values, hidden
