"""State files: what the runner reads of them, and what it refuses."""

import json

import pytest

from exclave.base.json_values import Json, JsonObject
from exclave.runner.terraform.state_document import Output, parse_state
from exclave.runner.terraform.state_store import describe_state, list_sensitive

MARKED: JsonObject = {
    "mode": "managed",
    "type": "t",
    "name": "a",
    "module": "module.m",
    "instances": [
        {
            "index_key": "x",
            "attributes": {"id": "i-1", "password": "hunter22", "list": ["open-text", "s3cret-2"]},
            "sensitive_attributes": [
                [{"type": "get_attr", "value": "password"}],
                [
                    {"type": "get_attr", "value": "list"},
                    {"type": "index", "value": {"value": 1, "type": "number"}},
                ],
                [{"type": "get_attr", "value": "gone"}],
            ],
        }
    ],
}


def write(**more: Json) -> bytes:
    return json.dumps({"version": 4, "serial": 3, "lineage": "l", **more}).encode()


def mask(text: str) -> str:
    return text.replace("i-", "*-")


def test_a_state_is_described_without_its_values() -> None:
    read_only: JsonObject = {"mode": "data", "type": "d", "name": "b", "instances": [{}]}
    data = write(resources=[MARKED, read_only])

    header = describe_state(parse_state(data), data, mask)

    assert (header.serial, header.lineage) == (3, "l")
    assert [(one.address, one.type, one.id) for one in header.resources] == [
        ('module.m.t.a["x"]', "t", "*-1")
    ]


def test_what_terraform_marks_as_sensitive_is_found() -> None:
    outputs: Json = {
        "pin": {"value": {"deep": ["wonderland"]}, "sensitive": True},
        "open": {"value": "public-text"},
    }
    document = parse_state(write(outputs=outputs, resources=[MARKED]))

    assert document.outputs["open"] == Output("public-text")
    assert list(list_sensitive(document)) == ["wonderland", "hunter22", "s3cret-2"]


def test_an_id_that_is_sensitive_is_not_shown() -> None:
    marks: Json = [[{"type": "get_attr", "value": "id"}]]
    instance: Json = {"attributes": {"id": "i-1"}, "sensitive_attributes": marks}
    resource: Json = {"mode": "managed", "type": "t", "name": "a", "instances": [instance]}

    document = parse_state(write(resources=[resource]))

    assert document.resources[0].instances[0].find_id() == ""


def test_an_empty_state_has_nothing() -> None:
    document = parse_state(write(outputs=None, resources=None))

    assert (document.outputs, document.resources) == ({}, ())


def resource(**more: Json) -> Json:
    return [{"mode": "managed", "type": "t", "name": "a", **more}]


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "the state is not valid JSON"),
        (b"[]", "the state is not an object"),
        (b"{}", "`serial` of the state is not a number"),
        (write(serial="3"), "`serial` of the state is not a number"),
        (write(lineage=None), "`lineage` of the state is not a text"),
        (write(outputs=[1]), "`outputs` is not an object"),
        (write(outputs={"o": 1}), "the output `o` is not an object"),
        (write(resources={"a": 1}), "`resources` of the state is not a list"),
        (write(resources=[{}]), "`type` of a resource in the state is not a text"),
        (write(resources=resource(instances=[1])), "an entry of `instances` .* not an object"),
        (
            write(resources=resource(instances=[{"sensitive_attributes": [["password"]]}])),
            "an entry of `sensitive_attributes` .* not an object",
        ),
        (
            write(resources=resource(instances=[{"sensitive_attributes": ["password"]}])),
            "an entry of `sensitive_attributes` .* not a list",
        ),
    ],
)
def test_a_state_of_a_wrong_shape_is_refused(data: bytes, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse_state(data)
