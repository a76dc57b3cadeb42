"""How the results of jobs that plan or deploy a part are read."""

from collections.abc import Callable
from dataclasses import dataclass

from exclave.base.json_values import Json, JsonObject


@dataclass(frozen=True, slots=True)
class PlanResult:
    """What a plan says about its part."""

    noop: bool
    """Whether an apply would change nothing."""
    serial: int
    """The version of the deployed state that the plan was made for."""


@dataclass(frozen=True, slots=True)
class PartResults:
    """How the outputs of one kind of jobs are read; they refuse what no such job reports."""

    read_plan: Callable[[JsonObject], PlanResult]
    """Reads what a plan reports."""
    read_outputs: Callable[[JsonObject], dict[str, Json]]
    """Reads the part's outputs, which templates can use, from what an apply reports."""
