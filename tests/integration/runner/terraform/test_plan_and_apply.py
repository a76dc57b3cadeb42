"""Plans and applies with the real tool: what they change, what they tell, what they refuse."""

import pytest

from exclave.domain.jobs import ExecutionId
from exclave.storage import attachments
from exclave.wire.jobs import OutcomeState, Reason
from tests.support.files import get_state
from tests.support.terraform import TerraformHarness, list_lines, make_spec

ONE = """
variable "size" { type = number }
resource "terraform_data" "a" { input = var.size }
output "id" { value = terraform_data.a.id }
output "size" { value = terraform_data.a.output }
"""


async def test_a_plan_is_applied_and_then_there_is_nothing_to_do(bench: TerraformHarness) -> None:
    bench.write(ONE)

    planned = await bench.plan(vars={"size": "3"})

    assert planned.outcome.state is OutcomeState.SUCCEEDED, planned.text
    assert planned.outputs["noop"] is False
    assert planned.outputs["summary"] == {
        "add": 1,
        "change": 0,
        "replace": 0,
        "destroy": 0,
        "import": 0,
        "move": 0,
        "outputs": 2,
        "keep": 0,
        "run": 0,
    }
    assert (planned.outputs["serial"], planned.outputs["lineage"]) == (0, "")
    applied = await bench.apply(planned)
    assert applied.outcome.state is OutcomeState.SUCCEEDED, applied.text
    assert applied.outputs["outputs"]["size"] == 3
    assert applied.outputs["summary"] == {"add": 1, "change": 0, "destroy": 0, "import": 0}
    assert applied.outputs["serial"] >= 1
    again = await bench.plan(vars={"size": "3"})
    assert (again.outputs["noop"], again.outputs["serial"]) == (True, applied.outputs["serial"])
    assert again.outputs["outputs"] == applied.outputs["outputs"]


async def test_the_log_is_for_people(bench: TerraformHarness) -> None:
    bench.write(ONE)

    ran = await bench.plan_and_apply(vars={"size": "3"})

    lines = list_lines(ran)
    assert any("terraform_data.a: Creating..." in line for line in lines)
    assert "Apply complete! Resources: 1 added, 0 changed, 0 destroyed." in lines
    assert not any(line.startswith("{") for line in lines)


async def test_the_document_tells_each_attribute(bench: TerraformHarness) -> None:
    bench.write(ONE)
    await bench.plan_and_apply(vars={"size": "3"})

    planned = await bench.plan(vars={"size": "4"})

    told = await bench.read_plan(planned)
    assert [one["action"] for one in told["resources"]] == ["update"]
    changed = {one["path"]: one for one in told["resources"][0]["attributes"]}
    assert (changed["input"]["before"], changed["input"]["after"]) == (3, 4)
    assert changed["output"]["unknown"] is True
    assert [(one["name"], one["action"]) for one in told["outputs"]] == [("size", "update")]
    assert told["summary"]["change"] == 1


async def test_a_replacement_is_no_noop(bench: TerraformHarness) -> None:
    bench.write('resource "terraform_data" "a" { triggers_replace = ["one"] }')
    await bench.plan_and_apply()
    bench.write('resource "terraform_data" "a" { triggers_replace = ["two"] }')

    planned = await bench.plan()

    assert planned.outputs["noop"] is False
    assert planned.outputs["summary"]["replace"] == 1
    told = (await bench.read_plan(planned))["resources"][0]
    assert told["action"] == "replace"
    assert any(one["forces_replacement"] for one in told["attributes"])


async def test_a_move_and_a_forgotten_resource_are_changes(bench: TerraformHarness) -> None:
    bench.write('resource "terraform_data" "a" {}\nresource "terraform_data" "b" {}')
    await bench.plan_and_apply()
    bench.write("""
resource "terraform_data" "c" {}
moved {
  from = terraform_data.a
  to = terraform_data.c
}
removed {
  from = terraform_data.b
  lifecycle { destroy = false }
}
""")

    planned = await bench.plan()

    told = await bench.read_plan(planned)
    assert {(one["address"], one["action"], one["previous"]) for one in told["resources"]} == {
        ("terraform_data.c", "move", "terraform_data.a"),
        ("terraform_data.b", "forget", ""),
    }
    assert planned.outputs["noop"] is False
    assert planned.outputs["summary"]["move"] == 1


async def test_destroying_leaves_an_empty_state_and_then_nothing_to_do(
    bench: TerraformHarness,
) -> None:
    bench.write(ONE)
    await bench.plan_and_apply(vars={"size": "3"})

    planned = await bench.plan(vars={"size": "3"}, destroy=True)
    applied = await bench.apply(planned, destroy=True)
    again = await bench.plan(vars={"size": "3"}, destroy=True)

    assert planned.outputs["summary"]["destroy"] == 1
    assert (applied.outcome.state, applied.outputs["outputs"]) == ("succeeded", {})
    assert (again.outputs["noop"], again.outputs["outputs"]) == (True, {})


async def test_an_older_plan_is_stale(bench: TerraformHarness) -> None:
    bench.write(ONE)
    old = await bench.plan(vars={"size": "1"})
    await bench.plan_and_apply(vars={"size": "2"})

    late = await bench.apply(old)

    assert (late.outcome.state, late.outcome.reason) == ("failed", "plan_stale")
    assert "plan again" in late.outcome.message


async def test_only_the_approved_plan_is_applied(bench: TerraformHarness) -> None:
    bench.write(ONE)
    planned = await bench.plan(vars={"size": "1"})
    other = await bench.plan(vars={"size": "2"})
    wrong = "sha256:" + "1" * 64

    approved = await bench.apply(planned, changes={"approved_digest": wrong})
    ref = {"execution_id": other.offer.execution_id, "digest": planned.outputs["digest"]}
    swapped = await bench.run(make_spec("apply", plan=ref))

    assert (approved.outcome.state, approved.outcome.reason) == ("failed", "plan_missing")
    assert "was approved" in approved.outcome.message
    assert swapped.outcome.reason is Reason.PLAN_MISSING


async def test_a_plan_that_was_changed_on_the_server_is_refused(bench: TerraformHarness) -> None:
    bench.write(ONE)
    planned = await bench.plan(vars={"size": "1"})
    execution = ExecutionId(planned.offer.execution_id)
    row = await bench.deps.db.read(
        lambda tx: attachments.find_attachment(tx, bench.user.org, execution, "plan.sealed")
    )
    assert row is not None
    sealed = bytearray(await bench.deps.blobs.get(row.blob))
    sealed[-1] ^= 1
    await bench.deps.blobs.put(row.blob, bytes(sealed))

    ran = await bench.apply(planned)

    assert (ran.outcome.state, ran.outcome.reason) == ("failed", "plan_missing")
    assert "changed or swapped" in ran.outcome.message


async def test_a_plan_of_another_workspace_does_not_open(bench: TerraformHarness) -> None:
    bench.write(ONE)
    planned = await bench.plan(vars={"size": "1"}, workspace="component:other")

    ran = await bench.apply(planned)

    assert (ran.outcome.state, ran.outcome.reason) == ("failed", "plan_missing")


async def test_the_module_s_own_backend_is_overridden(bench: TerraformHarness) -> None:
    bench.write('terraform {\n  backend "local" { path = "own.tfstate" }\n}\n' + ONE)
    bench.write('terraform {\n  backend "s3" {}\n}\n', "own_override.tf")

    ran = await bench.plan_and_apply(vars={"size": "1"})

    assert ran.outcome.state is OutcomeState.SUCCEEDED, ran.text
    who, at = bench.peer.who, (ExecutionId(ran.offer.execution_id), ran.offer.epoch)
    offer = await bench.offer("component:db", mutating=False)
    found = await get_state(
        bench.deps, who, ExecutionId(offer.execution_id), offer.epoch, "component:db"
    )
    assert found is not None, at
    assert [one.address for one in found.header.resources] == ["terraform_data.a"]


@pytest.mark.parametrize(
    ("text", "reason", "words"),
    [
        ("resource {", "syntax", "Error"),
        ('resource "terraform_data" "a" { nope = 1 }', "syntax", "Unsupported argument"),
        ('output "x" { value = var.nope }', "syntax", "undeclared"),
        ('variable "must" {}', "syntax", "No value for required variable"),
        ('terraform {\n required_providers {\n x = { source = "nowhere.invalid/a/b" }\n }\n}',
         "provider_unavailable", "EXCLAVE_TF_MIRROR"),
    ],
)  # fmt: skip
async def test_failures_are_classified_with_a_hint(
    bench: TerraformHarness, text: str, reason: str, words: str
) -> None:
    bench.write(text)

    ran = await bench.plan()

    assert (ran.outcome.state, ran.outcome.reason) == ("failed", reason), ran.outcome.message
    assert words in ran.outcome.message


async def test_terraform_heeds_the_version_that_a_module_wants_and_tofu_does_not(
    bench: TerraformHarness,
) -> None:
    bench.write('terraform { required_version = ">= 99" }')

    ran = await bench.plan()

    wanted = "failed" if bench.tool == "terraform" else "succeeded"
    assert ran.outcome.state == wanted, ran.text
    assert ("Terraform" in ran.outcome.message) == (wanted == "failed")


async def test_an_apply_that_fails_half_way_keeps_what_it_made(bench: TerraformHarness) -> None:
    bench.write("""
resource "terraform_data" "good" {}
resource "terraform_data" "bad" {
  depends_on = [terraform_data.good]
  provisioner "local-exec" { command = "echo AccessDenied: no; exit 3" }
}
""")
    planned = await bench.plan()

    ran = await bench.apply(planned)

    assert (ran.outcome.state, ran.outcome.exit_code) == ("failed", 1)
    again = await bench.plan()
    assert again.outputs["summary"]["add"] + again.outputs["summary"]["replace"] == 1


async def test_settings_of_the_tool_cannot_be_smuggled_in(bench: TerraformHarness) -> None:
    bench.write(ONE)

    ran = await bench.plan(env={"TF_CLI_ARGS": "-destroy", "TF_VAR_size": "7", "TF_LOG": "trace"})

    assert ran.outcome.state is OutcomeState.SUCCEEDED, ran.text
    assert ran.outputs["summary"]["add"] == 1
    assert "`TF_CLI_ARGS` is set by the runner" in ran.text
    assert "`TF_LOG` is set by the runner" in ran.text
