"""The document of a Stack: read strictly, because it decides what a runner may do."""

import base64
import json

import pytest

from exclave.base.json_values import Json
from exclave.runner.cloud.document import DocumentBroken, DocumentUnknown, parse_document
from exclave.stacks.naming import fit_name
from exclave.wire.jobs import JsonValue
from tests.unit.runner.cloud.cloud_kit import ARN, ROLE, read_document, write_document


def test_a_document_says_what_the_customer_allows() -> None:
    document = read_document(mode="plan-only", enabled="false")

    assert (document.is_enabled, document.mode, document.digest) == (False, "plan-only", "d1")
    assert document.program.digests["aarch64"] == "b" * 64
    assert document.inputs == {"domain": "acme.example"}
    assert document.secrets == {"db": "db-arn"}
    assert document.roles["admin"] is False


def test_roles_of_aws_are_found_by_the_ends_of_their_arns() -> None:
    references = read_document().role_references

    assert references[ROLE] == ARN
    assert references["acme-provision"].endswith(":role/acme-provision")
    assert references["support"].endswith("/x/support")
    assert references["admin"].endswith(":role/admin")


def test_a_name_that_was_cut_for_aws_is_found_all_the_same() -> None:
    long = "x" * 70
    arn = f"arn:aws:iam::1:role/path/{fit_name(long, 64)}"
    document = read_document(roles={long: "true"}, outputs={"maintenance_iam_role_arn": arn})

    assert document.role_references == {long: arn}


def test_other_clouds_list_what_a_role_is() -> None:
    document = read_document(outputs={}, role_references={ROLE: "a@b", "gone": "c"})

    assert document.role_references == {ROLE: "a@b"}


def test_outputs_of_the_vendors_templates_may_hold_any_character() -> None:
    value = 'a "quoted"\\ text\nof two lines'
    encoded = base64.b64encode(value.encode()).decode()
    document = read_document(nested_outputs_base64={"topic": {"Name": encoded, "Spare": ""}})

    assert document.outputs["custom_nested_stacks"] == {"topic": {"Name": value, "Spare": ""}}
    assert document.outputs["region"] == "eu-west-1"


def test_outputs_that_an_older_stack_wrote_as_text_are_read_too() -> None:
    nested: JsonValue = {"topic": {"Name": "plain"}}

    assert read_document(outputs={"custom_nested_stacks": nested}).outputs == {
        "custom_nested_stacks": nested
    }


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"enabled": True}, "`enabled` is neither"),
        ({"enabled": "yes"}, "`enabled` is neither"),
        ({"enabled": None}, "`enabled` is neither"),
        ({"mode": "half"}, "`mode` is neither"),
        ({"updates": ""}, "`updates` is neither"),
        ({"roles": {"a": "1"}}, "`roles.a` is neither"),
        ({"roles": []}, "`roles`"),
        ({"install": 1}, "`install`"),
        ({"inputs_base64": {"a": "%"}}, "`inputs_base64.a` is not a text in Base64"),
        ({"secrets": {"a": {}}}, "`secrets.a`"),
        ({"nested_outputs_base64": {"a": "x"}}, "`nested_outputs_base64.a`"),
        ({"nested_outputs_base64": {"a": {"b": "%"}}}, "`nested_outputs_base64.a.b` is not a text"),
    ],
)
def test_a_field_that_no_stack_writes_breaks_the_document(
    changes: dict[str, Json], says: str
) -> None:
    with pytest.raises(DocumentBroken, match=says):
        read_document(**changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "nothing", "[]", '"x"', "{" * 5000, "x" * 200_000])
def test_what_is_no_document_is_broken(text: str) -> None:
    with pytest.raises(DocumentBroken):
        parse_document(text)


@pytest.mark.parametrize("number", [0, 2, "1", None])
def test_an_unknown_format_is_for_another_runner(number: Json) -> None:
    with pytest.raises(DocumentUnknown):
        parse_document(json.dumps({**json.loads(write_document()), "format": number}))
