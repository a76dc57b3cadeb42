"""Both forms make the same things: resource by resource, parameter by parameter, right by right."""

import json
import re
from typing import Any

import pytest

from exclave.stacks.aws.cloudformation.template import build_template
from exclave.stacks.aws.terraform.module import write_files
from exclave.stacks.aws.terraform.types import TYPES
from exclave.stacks.model import StackModel
from exclave.stacks.naming import write_snake
from tests.support.aws_variants import VARIANTS

ATTACHED = {
    "aws_iam_role_policy_attachment": "a list of the role there",
    "aws_iam_role_policy": "a part of the role there",
    "aws_secretsmanager_secret_version": "a part of the secret there",
}
"""What Terraform has as resources of their own."""


def read_module(model: StackModel) -> dict[str, Any]:
    """Return the blocks of all files of the Terraform form by kind."""
    merged: dict[str, Any] = {}
    for text in write_files(model).values():
        for kind, blocks in json.loads(text).items():
            for type_, named in blocks.items():
                if kind in ("resource", "data", "ephemeral"):
                    merged.setdefault(kind, {}).setdefault(type_, {}).update(named)
                else:
                    merged.setdefault(kind, {})[type_] = named
    return merged


def list_terraform(module: dict[str, Any]) -> set[tuple[str, str]]:
    return {
        (type_, name)
        for type_, named in module["resource"].items()
        if type_ not in ATTACHED
        for name in named
    }


def list_template(template: Any) -> set[tuple[str, str]]:
    """List the resources as Terraform has them; those of a nested template are one stack there."""
    return {
        (TYPES[body["Type"]], write_snake(name))
        for name, body in template["Resources"].items()
        if not name.startswith("NestedTopic")
    }


@pytest.mark.parametrize("variant", VARIANTS)
def test_both_forms_have_the_same_resources_under_the_same_names(variant: str) -> None:
    template, module = build_template(VARIANTS[variant]), read_module(VARIANTS[variant])

    nested = {("aws_cloudformation_stack", "nested_topic")} if VARIANTS[variant].nested else set()
    assert list_terraform(module) == list_template(template) | nested


@pytest.mark.parametrize("variant", VARIANTS)
def test_both_forms_ask_for_the_same_values(variant: str) -> None:
    template: Any = build_template(VARIANTS[variant])
    variables = read_module(VARIANTS[variant])["variable"]

    expected = {write_snake(name.replace("GiB", "Gib")) for name in template["Parameters"]}
    versions = {f"{name}_version" for name, body in variables.items() if body.get("ephemeral")}
    assert set(variables) - versions == expected
    required = {
        write_snake(n) for n, body in template["Parameters"].items() if "Default" not in body
    }
    assert {name for name, body in variables.items() if "default" not in body} == required
    hidden = {write_snake(n) for n, body in template["Parameters"].items() if body.get("NoEcho")}
    assert {name for name, body in variables.items() if body.get("sensitive")} == hidden


@pytest.mark.parametrize("variant", VARIANTS)
def test_both_forms_have_the_same_conditions(variant: str) -> None:
    template: Any = build_template(VARIANTS[variant])
    module = read_module(VARIANTS[variant])

    for name, body in template["Resources"].items():
        if not name.startswith("NestedTopic"):
            other = module["resource"][TYPES[body["Type"]]][write_snake(name)]
            assert ("Condition" in body) == ("count" in other), name


def list_actions(node: Any) -> list[str]:
    """List the actions of all statements in a tree."""
    if isinstance(node, str) and node.startswith("{"):
        return list_actions(json.loads(node))
    if isinstance(node, list):
        return [action for item in node for action in list_actions(item)]
    if not isinstance(node, dict):
        return []
    if "Effect" in node:
        actions = node["Action"]
        return [
            f"{node['Effect']} {a}" for a in ([actions] if isinstance(actions, str) else actions)
        ]
    return [action for value in node.values() for action in list_actions(value)]


def test_both_forms_allow_and_deny_the_same() -> None:
    template: Any = build_template(VARIANTS["full"])
    module = read_module(VARIANTS["full"])

    def count(actions: list[str]) -> set[str]:
        return {action for action in actions if "sts:" not in action}

    blocks = {
        k: v for k, v in module["locals"].items() if re.match("guard|runner_p|secrets_p|reg", k)
    }
    policies = [
        body["policy"]
        for type_ in ("aws_iam_role_policy", "aws_iam_policy")
        for body in module["resource"][type_].values()
        if body["policy"].startswith("{")
    ]
    assert count(list_actions(template["Resources"])) == count(list_actions([blocks, policies]))


def test_every_role_has_the_guard_in_both_forms() -> None:
    template: Any = build_template(VARIANTS["full"])
    attached = read_module(VARIANTS["full"])["resource"]["aws_iam_role_policy_attachment"]

    roles = {n: b for n, b in template["Resources"].items() if b["Type"] == "AWS::IAM::Role"}
    assert len(roles) == 6
    for name, body in roles.items():
        assert {"Ref": "Guard"} in body["Properties"]["ManagedPolicyArns"]
        assert attached[f"{write_snake(name)}_guard"]["policy_arn"] == "${aws_iam_policy.guard.arn}"


def test_the_boot_script_is_the_same_in_both_forms() -> None:
    template: Any = build_template(VARIANTS["full"])
    script = read_module(VARIANTS["full"])["locals"]["boot_script"]

    data = template["Resources"]["RunnerTemplate"]["Properties"]["LaunchTemplateData"]["UserData"]
    ours = data["Fn::Base64"]["Fn::Sub"]
    for there, here in (
        ("${local.region}", "${AWS::Region}"),
        ("${local.domain}", "${AWS::URLSuffix}"),
        ("${aws_secretsmanager_secret.stack_document.arn}", "${StackDocument}"),
    ):
        script = script.replace(there, here)
    assert script == ours


def test_the_document_has_the_same_keys_in_both_forms() -> None:
    template: Any = build_template(VARIANTS["full"])
    text = template["Resources"]["StackDocument"]["Properties"]["SecretString"]["Fn::Sub"][0]

    def list_keys(node: Any, path: str = "") -> set[str]:
        if not isinstance(node, dict):
            return {path}
        return {key for name, value in node.items() for key in list_keys(value, f"{path}/{name}")}

    assert list_keys(json.loads(text)) == list_keys(
        read_module(VARIANTS["full"])["locals"]["document"]
    )
