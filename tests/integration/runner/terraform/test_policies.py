"""Policies with the real opa: deny stops, warn shows, what cannot be evaluated never passes."""

import shutil

import pytest

from tests.support.terraform import TerraformHarness
from tests.support.tools import need_tool

DENY = """
package nuon

deny contains msg if {
  some change in input.plan.resource_changes
  change.change.actions[_] == "create"
  count(input.plan.variables.secret.value) > 0
  msg := sprintf("%s may not be made with %s", [change.address, input.plan.variables.secret.value])
}
"""
OLD = """
package nuon

deny[msg] {
  change := input.plan.resource_changes[_]
  change.type == "aws_s3_bucket"
  msg := "no buckets"
}

warn[msg] {
  count(input.plan.resource_changes) > 0
  msg := {"msg": "something changes"}
}
"""
PASS = """
package nuon

pass contains msg if {
  some change in input.plan.resource_changes
  change.type == "terraform_data"
  msg := sprintf("%s is allowed", [change.address])
}
"""
MODULE = 'variable "secret" {\n default = ""\n}\nresource "terraform_data" "a" {}'


def policy(name: str, rego: str) -> dict[str, str]:
    return {"name": name, "rego": rego}


def finding(name: str, level: str, message: str) -> dict[str, str]:
    return {"name": name, "level": level, "message": message, "resource": ""}


@pytest.fixture
def with_opa(bench: TerraformHarness) -> TerraformHarness:
    tools = bench.folder / "tools"
    tools.mkdir()
    shutil.copy(need_tool("opa"), tools / "opa")
    return bench


async def test_a_denied_plan_fails_with_all_messages_and_is_still_shown(
    with_opa: TerraformHarness,
) -> None:
    with_opa.write(MODULE)

    ran = await with_opa.plan(
        policies=[policy("old", OLD), policy("no-new", DENY)],
        vars={"secret": "((exclave:secret:token))"},
    )

    assert (ran.outcome.state, ran.outcome.reason) == ("failed", "policy_denied"), ran.text
    assert ran.outcome.message == (
        "policy `no-new` denies this plan: terraform_data.a may not be made with ***"
    )
    told = await with_opa.read_plan(ran)
    assert told["policies"] == [
        finding("no-new", "deny", "terraform_data.a may not be made with ***"),
        finding("old", "warn", "something changes"),
    ]
    assert "policy old: warn: something changes" in ran.text


async def test_a_warning_is_shown_and_passes(with_opa: TerraformHarness) -> None:
    with_opa.write(MODULE)

    ran = await with_opa.plan(policies=[policy("old", OLD), policy("new", DENY)])

    assert ran.outcome.state == "succeeded", ran.text
    assert ran.outputs["policies"] == {"warn": ["old: something changes"]}


async def test_a_policy_with_pass_rules_only_is_shown_and_refuses_nothing(
    with_opa: TerraformHarness,
) -> None:
    with_opa.write(MODULE)

    ran = await with_opa.plan(policies=[policy("checked", PASS), policy("old", OLD)])

    assert ran.outcome.state == "succeeded", ran.text
    told = await with_opa.read_plan(ran)
    assert told["policies"] == [
        finding("old", "warn", "something changes"),
        finding("checked", "pass", "terraform_data.a is allowed"),
    ]
    assert "policy checked: pass: terraform_data.a is allowed" in ran.text


async def test_a_policy_of_which_nothing_passes_refuses_nothing(with_opa: TerraformHarness) -> None:
    with_opa.write("")

    ran = await with_opa.plan(policies=[policy("checked", PASS)])

    assert ran.outcome.state == "succeeded", ran.text
    assert (await with_opa.read_plan(ran))["policies"] == []


@pytest.mark.parametrize(
    ("rego", "words"),
    [
        ("package nuon\n\ndeny contains {", "cannot be evaluated: line"),
        ("package other\n\ndeny := true", "no `deny`, `warn` or `pass`"),
        ("package nuon\n\ndeny contains msg if { msg := nothing(1) }", "undefined function"),
        ("", "cannot be evaluated"),
    ],
)
async def test_a_broken_policy_never_passes(
    with_opa: TerraformHarness, rego: str, words: str
) -> None:
    with_opa.write(MODULE)

    ran = await with_opa.plan(policies=[policy("broken", rego)])

    assert (ran.outcome.state, ran.outcome.reason) == ("failed", "syntax"), ran.text
    assert "`broken`" in ran.outcome.message
    assert words in ran.outcome.message


async def test_without_the_tool_nothing_passes(bench: TerraformHarness) -> None:
    bench.write(MODULE)

    ran = await bench.plan(policies=[policy("old", OLD)])

    assert (ran.outcome.state, ran.outcome.reason) == ("failed", "tool_missing")
    assert "Install opa" in ran.outcome.message
    assert "plan.bin" not in [file.name for file in ran.folder.iterdir()]
