"""Templates that `stack.toml` names: known ones, the vendor's own ones, and those refused."""

from typing import Any

import pytest

from exclave.appconfig.model.kinds.stack import NestedStack, Stack
from exclave.stacks.building.model import BuiltModel
from exclave.stacks.building.parts import StackParts
from exclave.stacks.model import NestedModel
from tests.unit.stacks.models_kit import build_parts, show_findings

PUBLIC = "https://vendor.s3.us-west-2.amazonaws.com/aws/v1"
FILE = "Resources: {A: {Type: T}}\n"


def build(*nested: dict[str, Any], cloud: str = "aws", **stack: Any) -> BuiltModel:
    stacks = tuple(NestedStack(**{"name": "data", **values}) for values in nested)
    return build_parts(
        StackParts(cloud, stack=Stack(custom_nested_stacks=stacks, **stack)), size="large"
    )


@pytest.mark.parametrize(
    ("key", "address", "code"),
    [
        ("vpc_nested_template_url", f"{PUBLIC}/vpc/eks/default/stack.yaml", ""),
        ("vpc_nested_template_url", f"{PUBLIC}/vpc/eks/byo-vpc/stack.yaml", ""),
        ("runner_nested_template_url", f"{PUBLIC}/runner/asg/stack.yaml", ""),
        ("vpc_nested_template_url", f"{PUBLIC}/mine.yaml", "unknown_template"),
        ("runner_nested_template_url", f"{PUBLIC}/vpc/eks/default/x.yaml", "unknown_template"),
    ],
)
def test_only_known_templates_of_network_and_runner_stand_for_something(
    key: str, address: str, code: str
) -> None:
    built = build(**{key: address})

    assert [item[0] for item in show_findings(built)] == ([code] if code else [])
    assert build(**{key: address}, cloud="azure").findings == ()


def test_nested_stacks_run_in_the_order_of_their_indexes_with_rendered_parameters() -> None:
    text = FILE + "Parameters: {Size: {Type: String}}\n"
    first = {
        "name": "late",
        "index": 2,
        "template_url": text,
        "parameters": {"Size": "{{.nuon.inputs.inputs.size}}"},
    }
    second = {"name": "early", "index": 1, "template_url": f"{PUBLIC}/x.yaml"}

    built = build(first, second)

    assert built.findings == ()
    assert built.model.nested == (
        NestedModel("early", 1, f"{PUBLIC}/x.yaml", parameters={}),
        NestedModel("late", 2, "", content=text, parameters={"Size": "large"}),
    )


@pytest.mark.parametrize(
    ("cloud", "url", "ok"),
    [
        ("aws", "https://example.com/x.yaml", False),
        ("aws", "https://b.s3.eu-west-1.amazonaws.com/x.yaml", True),
        ("aws", "https://s3.amazonaws.com/b/x.yaml", True),
        ("aws", "https://s3.amazonaws.com.evil.example/x.yaml", False),
        ("aws", FILE, True),
        ("aws", "Resources: [", False),
        ("aws", '{"Resources": {"A": {"Type": "https://x"}}}', True),
        ("azure", "https://example.com/x.json", True),
        ("azure", "github.com/acme/x//y", False),
        ("azure", '{"resources": []}', True),
        ("azure", "resources: []\n", False),
        ("gcp", "github.com/acme/stacks//gcp/modules/network", True),
        ("gcp", "https://github.com/acme/stacks//gcp/modules/network?ref=v1", True),
        ("gcp", "https://example.com/x.yaml", False),
        ("gcp", FILE, False),
    ],
)
def test_each_cloud_takes_its_own_kinds_of_templates(cloud: str, url: str, ok: bool) -> None:
    built = build({"template_url": url, "index": 0}, cloud=cloud)

    codes = [item[0] for item in show_findings(built)]
    assert codes == ([] if ok else ["unknown_template"])


def test_a_finding_about_a_file_names_its_line() -> None:
    built = build({"template_url": "Resources:\n  A: !Nope x\n", "index": 0})

    (finding,) = built.findings
    assert finding.at == ("custom_nested_stacks", 0, "template_url")
    assert finding.position is not None
    assert finding.position.line == 2


def test_nested_stacks_whose_names_would_clash_are_refused() -> None:
    built = build(
        {"name": "a-b", "template_url": FILE, "index": 0},
        {"name": "a_b", "template_url": FILE, "index": 1},
    )

    assert show_findings(built) == [
        ("duplicate_name", "stack", "", ("custom_nested_stacks", 1, "name"))
    ]


def test_what_a_file_loses_as_a_part_of_the_stack_is_a_warning() -> None:
    text = FILE + "Outputs: {X: {Value: 1, Export: {Name: x}}}\n"

    built = build({"template_url": text, "index": 0})

    assert built.is_ok
    assert show_findings(built) == [
        ("not_applied", "stack", "", ("custom_nested_stacks", 0, "template_url"))
    ]
