"""The serial of a restored state is raised, and nothing else of it is touched."""

import json
from typing import Any

import pytest

from exclave.runner.secrets.sealing import SealBroken
from exclave.runner.states.sealed_store import align_serial
from exclave.wire.states import StateHeader

STATE = b"""{
  "version": 4,
  "terraform_version": "1.11.3",
  "serial": 3,
  "lineage": "line",
  "outputs": {"serial": {"value": {"serial": 3}, "type": "number"}},
  "resources": [{"instances": [{"attributes": {"size": 1.00000000000000000001, "id": 12345678901234567890}}]}]
}
"""


def header(serial: int, sealed: int | None = None, lineage: str = "line") -> StateHeader:
    return StateHeader(serial=serial, lineage=lineage, sha256="a" * 64, sealed_serial=sealed)


def test_a_state_that_was_not_restored_stays_as_it_is() -> None:
    assert align_serial(STATE, header(3)) is STATE


def test_only_the_digits_of_the_serial_change() -> None:
    assert align_serial(STATE, header(12, 3)) == STATE.replace(b'"serial": 3,', b'"serial": 12,')


@pytest.mark.parametrize(
    "document",
    [
        {"outputs": {"serial": 3}, "serial": 3, "lineage": "line"},
        {"text": '"serial": 3', "deep": [{"serial": 3}], "serial": 3, "lineage": "line"},
    ],
)
def test_a_serial_of_something_else_is_left_alone(document: dict[str, Any]) -> None:
    raised = align_serial(json.dumps(document).encode(), header(4, 3))

    assert json.loads(raised) == {**document, "serial": 4}


@pytest.mark.parametrize("told", [header(4), header(5, 2), header(3, lineage="other")])
def test_a_state_that_its_header_does_not_tell_of_is_refused(told: StateHeader) -> None:
    with pytest.raises(SealBroken, match="the sealed state"):
        align_serial(STATE, told)


@pytest.mark.parametrize(
    ("data", "complaint"), [(b"{", "is not valid JSON"), (b"[]", "is not an object")]
)
def test_a_sealed_state_of_a_wrong_shape_is_refused(data: bytes, complaint: str) -> None:
    with pytest.raises(SealBroken, match=f"the sealed state {complaint}"):
        align_serial(data, header(3))
