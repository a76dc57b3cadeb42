"""What jobs hand in: refused where it arrives, if no reader or database could hold it."""

import json

import pytest
from pydantic import ValidationError

from exclave.wire.jobs import OutcomeState, Reason
from exclave.wire.runner import Outcome


def nest(levels: int) -> object:
    return json.loads("[" * levels + "]" * levels)


@pytest.mark.parametrize(
    "value", ["a\0", "\ud800", {"\udfff": 1}, [["\ud800"]], float("inf"), nest(100)]
)
def test_what_cannot_be_stored_is_refused(value: object) -> None:
    with pytest.raises(ValidationError):
        Outcome(state=OutcomeState.SUCCEEDED, reason=Reason.COMPLETED, outputs={"a": value})


def test_what_is_nested_as_deep_as_a_reader_takes_is_fine() -> None:
    outcome = Outcome(
        state=OutcomeState.SUCCEEDED,
        reason=Reason.COMPLETED,
        outputs={"a": nest(90)},
    )

    assert Outcome.model_validate_json(outcome.model_dump_json()) == outcome
