"""Nothing secret leaves the runner: not in a state, a plan, a log, an output or an error."""

import json

from sqlalchemy import select

from exclave.control.deps import Deps
from exclave.storage.engine.database import Database
from exclave.storage.tables import metadata
from tests.support.terraform import Ran, TerraformHarness

CANARY = "canary-secret-value"
MODULE = """
variable "plain" {}
variable "hidden" {
  sensitive = true
}
resource "terraform_data" "a" {
  input = { open = var.plain, closed = var.hidden, both = "x${var.plain}y" }
}
resource "terraform_data" "b" {
  triggers_replace = [var.plain]
  provisioner "local-exec" {
    command     = "echo out $WORD; echo err $WORD >&2; echo $WORD | base64; test $STOP = no"
    environment = { WORD = var.plain, STOP = var.stop }
  }
}
variable "stop" { default = "no" }
output "open" { value = terraform_data.a.output.both }
output "closed" {
  value     = var.hidden
  sensitive = true
}
output "made" {
  value     = "canary-made-here-${terraform_data.a.id}"
  sensitive = true
}
"""
SECRETS = {
    "plain": "((exclave:secret:token))",
    "hidden": "((exclave:secret:token))-and-more",
}


async def read_everything(bench: TerraformHarness) -> bytes:
    """Read every blob and every row of the control plane."""
    blobs = [await bench.deps.blobs.get(key) for key in await bench.deps.blobs.list_keys()]
    return b"\n".join(blobs) + _dump_rows(bench.deps)


def _dump_rows(deps: Deps) -> bytes:
    assert isinstance(deps.db, Database)
    rows: list[object] = []
    with deps.db._read_engine.connect() as connection:
        for table in metadata.sorted_tables:
            rows += [dict(row._mapping) for row in connection.execute(select(table))]
    return json.dumps(rows, default=str).encode()


def read_local(ran: Ran) -> bytes:
    return ran.text.encode() + ran.outcome.model_dump_json().encode()


async def test_no_secret_is_in_any_stored_byte(bench: TerraformHarness) -> None:
    bench.write(MODULE)

    made = await bench.plan_and_apply(vars=SECRETS)
    failed = await bench.plan_and_apply(vars={**SECRETS, "stop": "yes"})
    changed = await bench.plan(vars={**SECRETS, "plain": "((exclave:secret:pin))"})
    destroyed = await bench.plan(vars=SECRETS, destroy=True)
    broken = await bench.plan(vars={**SECRETS, "stop": "((exclave:secret:token))"}, destroy=True)

    assert made.outcome.state == "succeeded", made.text
    assert failed.outcome.state == "succeeded"
    stored = await read_everything(bench)
    for word in (CANARY, "canary-made-here", "Y2FuYXJ5"):
        assert word.encode() not in stored
        for ran in (made, failed, changed, destroyed, broken):
            assert word.encode() not in read_local(ran)
    assert b"terraform_data.a" in stored
    assert made.outputs["outputs"]["open"] == "x***y"
    told = await bench.read_plan(changed)
    shown = {one["path"]: one for one in told["resources"][0]["attributes"]}
    assert (shown["input.open"]["before"], shown["input.open"]["after"]) == ("***", "***")
    assert shown["input.closed"]["sensitive"] if "input.closed" in shown else True


async def test_no_secret_is_on_the_command_line_or_readable_by_others(
    bench: TerraformHarness,
) -> None:
    bench.write(MODULE)

    ran = await bench.plan(vars=SECRETS)

    for file in ran.folder.rglob("*"):
        if file.is_file() and "module" not in file.parts and CANARY.encode() in file.read_bytes():
            assert file.stat().st_mode & 0o077 == 0, file
    assert ran.folder.stat().st_mode & 0o077 == 0


async def test_sealed_states_are_opened_by_their_own_runner_only(bench: TerraformHarness) -> None:
    bench.write('resource "terraform_data" "a" {}')
    await bench.plan_and_apply()
    (bench.data / "seal.key").write_text("00" * 32)
    fresh = type(bench.sealer)(bench.data, bench.kit.randomness)
    bench.sealer.__dict__.update(fresh.__dict__)

    ran = await bench.plan()

    assert ran.outcome.state == "failed"
    assert ran.outcome.reason == "state_refused"
    assert "not sealed with this runner's key" in ran.outcome.message
