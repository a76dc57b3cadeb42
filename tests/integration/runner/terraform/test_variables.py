"""Variables reach the module with the type that it declares, and exactly as they are."""

import json
from typing import Any

import pytest

from tests.support.terraform import TerraformHarness

TYPES = """
variable "text" { type = string }
variable "number" { type = number }
variable "truth" { type = bool }
variable "plain" {}
variable "list" { type = list(string) }
variable "set" { type = set(number) }
variable "map" { type = map(string) }
variable "object" {
  type = object({ name = string, ports = list(number), extra = optional(string) })
}
variable "any" { type = any }
variable "hcl" {
  type = map(list(number))
}
variable "secret" {
  type      = string
  sensitive = true
}
variable "secrets" {
  type      = map(string)
  sensitive = true
}
"""
OUTPUTS = """
output "all" {
  value = jsonencode({
    text = var.text, number = var.number, truth = var.truth, plain = var.plain, list = var.list,
    set = var.set, map = var.map, object = var.object, any = var.any, hcl = var.hcl,
  })
}
output "secret_length" { value = nonsensitive(length(var.secret)) }
output "secret_keys" { value = nonsensitive(keys(var.secrets)) }
output "secret" {
  value     = var.secret
  sensitive = true
}
output "short" { value = nonsensitive(var.secrets.pin) }
"""
AWKWARD = 'a "quoted" ${not.a.template} %{ if } \\ \n line é'


async def test_every_type_arrives_as_it_is(bench: TerraformHarness) -> None:
    bench.write(TYPES + OUTPUTS)
    given = {
        "text": AWKWARD,
        "number": "4.5",
        "truth": "true",
        "plain": '["stays", "text"]',
        "list": json.dumps(["a", AWKWARD]),
        "set": "[3, 1, 3]",
        "map": json.dumps({"k": AWKWARD, 'a "b" c': "2"}),
        "object": '{"name": "n", "ports": [1, "2"], "extra": null}',
        "any": '{"deep": [{"x": true}]}',
        "hcl": '{ a = [1, 2], "b" = [] } # a comment',
        "secret": "((exclave:secret:token))",
        "secrets": '{"one": "((exclave:secret:token))", "pin": "((exclave:secret:pin))"}',
    }

    ran = await bench.plan_and_apply(vars=given)

    assert ran.outcome.state == "succeeded", ran.text
    told: dict[str, Any] = json.loads(ran.outputs["outputs"]["all"])
    assert told == {
        "text": AWKWARD,
        "number": 4.5,
        "truth": True,
        "plain": '["stays", "text"]',
        "list": ["a", AWKWARD],
        "set": [1, 3],
        "map": {"k": AWKWARD, 'a "b" c': "2"},
        "object": {"name": "n", "ports": [1, 2], "extra": None},
        "any": {"deep": [{"x": True}]},
        "hcl": {"a": [1, 2], "b": []},
    }
    assert ran.outputs["outputs"]["secret_length"] == len("canary-secret-value")
    assert ran.outputs["outputs"]["secret_keys"] == ["one", "pin"]
    assert ran.outputs["outputs"]["secret"] == "((exclave:output:component:db:secret))"
    assert ran.outputs["sensitive_outputs"] == ["secret"]
    assert ran.outputs["outputs"]["short"] == "***"


async def test_files_win_over_single_variables_and_later_ones_over_earlier(
    bench: TerraformHarness,
) -> None:
    bench.write("""
variable "a" {}
variable "b" {}
variable "c" {}
variable "d" { type = list(string) }
variable "e" {}
output "all" { value = "${var.a} ${var.b} ${var.c} ${join(",", var.d)} ${var.e}" }
""")
    files = [
        'a = "1"\nb = "1"\nc = "1"\nd = ["x"]\n',
        '{"b": "2", "c": "2"}',
        '# ((exclave:secret:token))\nd = [\n  "((exclave:secret:pin))!",\n  ((exclave:secret:pin)),\n]',
    ]

    ran = await bench.plan_and_apply(var_files=files, vars={"c": "3", "d": '["y"]', "e": "3"})

    assert ran.outputs["outputs"]["all"] == "1 2 2 4711!,4711 3"


async def test_env_variables_are_filled(bench: TerraformHarness) -> None:
    bench.write("""
variable "from_env" { type = list(string) }
output "all" { value = length(join("", var.from_env)) }
""")

    ran = await bench.plan_and_apply(env={"TF_VAR_from_env": '["((exclave:secret:token))"]'})

    assert ran.outputs["outputs"]["all"] == len("canary-secret-value")


@pytest.mark.parametrize(
    ("given", "reason", "words"),
    [
        ({"list": '["a"'}, "syntax", "`list` is structured"),
        ({"list": "["} , "syntax", "`list` is structured"),
        ({"list": '["a"]) injected = ("x"'}, "syntax", "`list` is structured"),
        ({"number": "many"}, "syntax", "number"),
        ({"number": "((exclave:secret:none))"}, "secret_missing", "`none`"),
        ({"number": "((exclave:magic:none))"}, "render_failed", "is not a placeholder"),
        ({"number": "((exclave:input:none))"}, "secret_missing", "installs inputs set"),
        ({"number": "((exclave:output:component:x:y))"}, "secret_missing", "deploy it first"),
    ],
)  # fmt: skip
async def test_values_that_cannot_be_used_are_refused(
    bench: TerraformHarness, given: dict[str, str], reason: str, words: str
) -> None:
    bench.write(
        'variable "list" {\n type = list(string)\n default = []\n}\n'
        'variable "number" {\n type = number\n default = 1\n}'
    )

    ran = await bench.plan(vars=given)

    assert (ran.outcome.state, ran.outcome.reason) == ("failed", reason), ran.outcome.message
    assert words in ran.outcome.message


async def test_a_sensitive_output_of_another_component_is_filled_on_the_runner(
    bench: TerraformHarness,
) -> None:
    bench.write("""
output "password" {
  value     = "canary-password-1"
  sensitive = true
}
output "list" {
  value     = ["canary-item-1", "b"]
  sensitive = true
}
""")
    made = await bench.plan_and_apply(workspace="component:source")
    bench.write("""
variable "password" {}
variable "list" { type = list(string) }
output "length" { value = length(var.password) }
output "count" { value = length(var.list) }
output "leak" { value = "it is ${var.password}" }
""")

    ran = await bench.plan_and_apply(
        vars={name: made.outputs["outputs"][name] for name in ("password", "list")}
    )

    assert ran.outcome.state == "succeeded", ran.text
    assert ran.outputs["outputs"] == {"length": 17, "count": 2, "leak": "it is ***"}


async def test_a_value_for_nothing_is_told(bench: TerraformHarness) -> None:
    bench.write("")

    ran = await bench.plan(vars={"nobody": "wants this"})

    assert ran.outcome.state == "succeeded"
    assert "undeclared variable" in ran.text


SANDBOX_WITH_POLICIES = """
variable "kyverno_policy_dir" { type = string }
output "files" { value = length(fileset(var.kyverno_policy_dir, "**")) }
output "folder" { value = var.kyverno_policy_dir }
"""


async def test_a_sandbox_that_asks_for_a_folder_of_policies_gets_an_empty_one(
    bench: TerraformHarness,
) -> None:
    bench.write(SANDBOX_WITH_POLICIES)

    ran = await bench.plan_and_apply(workspace="sandbox")

    assert ran.outcome.state == "succeeded", ran.text
    assert ran.outputs["outputs"] == {"files": 0, "folder": "exclave-no-policies"}
    assert "`kyverno_policy_dir` is an empty folder" in ran.text


@pytest.mark.parametrize(
    ("declaration", "given"),
    [
        ('variable "kyverno_policy_dir" { default = "own" }', {}),
        ('variable "kyverno_policy_dir" {}', {"kyverno_policy_dir": "own"}),
    ],
)
async def test_a_folder_of_policies_that_the_app_or_the_module_names_stays(
    bench: TerraformHarness, declaration: str, given: dict[str, str]
) -> None:
    bench.write(f'{declaration}\noutput "folder" {{ value = var.kyverno_policy_dir }}')

    ran = await bench.plan_and_apply(workspace="sandbox", vars=given)

    assert ran.outputs["outputs"] == {"folder": "own"}, ran.text
