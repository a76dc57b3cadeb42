"""Lines of `-json` output as messages; any other line is none."""

import json

import pytest

from exclave.base.json_values import Json
from exclave.runner.terraform.messages import (
    ChangeCounts,
    Message,
    ResourceEvent,
    parse_message,
)


def parse(**fields: Json) -> Message | None:
    return parse_message(json.dumps({"@message": "said", **fields}).encode())


def test_a_message_about_a_resource_is_read() -> None:
    resource: Json = {"addr": "t.a", "resource_type": "t"}
    hook: Json = {"resource": resource, "action": "create", "id_key": "id", "id_value": "i-1"}

    message = parse(type="apply_complete", hook=hook, **{"@timestamp": "now"})

    event = ResourceEvent("t.a", "t", "create", "id", "i-1")
    assert message == Message("apply_complete", "said", at="now", resource=event)


def test_the_counts_of_changes_are_read() -> None:
    changes: Json = {"add": 1, "change": 2, "remove": 3, "import": 4, "operation": "apply"}

    message = parse(type="change_summary", changes=changes)

    assert message is not None
    assert message.counts == ChangeCounts(1, 2, 3, 4)


@pytest.mark.parametrize(
    "line", [b"", b"plain text", b"[]", b"3", b'{"type": "x"}', b"[" * 100_000]
)
def test_a_line_that_is_no_message_is_none(line: bytes) -> None:
    assert parse_message(line) is None


def test_fields_of_a_wrong_shape_are_left_out() -> None:
    message = parse(type="change_summary", changes=["add"], hook="apply")
    counted = parse(type="change_summary", changes={"add": "many"})

    assert message == Message("change_summary", "said")
    assert counted == Message("change_summary", "said", counts=ChangeCounts())
    assert parse(type="apply_start", hook={"resource": 3}) == Message(
        "apply_start", "said", resource=ResourceEvent(None, None, None, None, None)
    )
