"""Plans a module: init, plan, policies; uploads the encrypted plan and a readable document."""

from collections.abc import Sequence
from pathlib import Path

from exclave.runner.commands import terraform
from exclave.runner.outcomes import WorkFailed
from exclave.runner.plans.plan_outcomes import end_plan
from exclave.runner.plans.policies import check_policies
from exclave.runner.plans.sealed_plans import hand_in_plan
from exclave.runner.secrets.sealing import Sealer
from exclave.runner.terraform.context import TerraformContext
from exclave.runner.terraform.diagnostics import explain
from exclave.runner.terraform.messages import MessageLog
from exclave.runner.terraform.outputs import split_outputs
from exclave.runner.terraform.plan_document import describe_plan, is_noop
from exclave.runner.terraform.saved_plan import SavedPlan, parse_plan
from exclave.wire.jobs import JsonValue, Reason
from exclave.wire.plans import PlanDocument
from exclave.wire.runner import Outcome


async def run_init(tf: TerraformContext) -> None:
    """Run `init`; a failure is classified."""
    argv = terraform.init(tf.tool)
    async with tf.plugins.turn(lambda: tf.context.check("`init`")):
        printed = await tf.capture("init", argv, quiet=False)
        if printed.code != 0:
            raise WorkFailed(*explain("init", (), printed.stderr + printed.stdout))


async def run_plan(tf: TerraformContext, var_files: Sequence[Path]) -> None:
    """Create the plan; `plan` validates the module first and reports all errors at once."""
    argv = terraform.plan(tf.tool, out=tf.plan_file, var_files=var_files, destroy=tf.spec.destroy)
    messages = MessageLog(tf.context.log)
    code = await tf.run("plan", argv, log=messages)
    if code != 0:
        raise WorkFailed(*explain("plan", messages.errors, ""))


async def read_plan(tf: TerraformContext) -> tuple[SavedPlan, str]:
    """Read the saved plan as JSON, once: with big providers each look costs seconds."""
    printed = await tf.capture("show", terraform.show(tf.tool, tf.plan_file))
    if printed.code != 0:
        raise WorkFailed(*explain("show", (), printed.stderr))
    try:
        return parse_plan(printed.stdout), printed.stdout
    except ValueError as error:
        raise WorkFailed(Reason.RUNNER_ERROR, f"the plan cannot be read: {error}") from error


async def plan(
    tf: TerraformContext, sealer: Sealer, opa: str, var_files: Sequence[Path]
) -> Outcome:
    """Run the whole job: init, plan, policies, upload."""
    await run_init(tf)
    await run_plan(tf, var_files)
    saved, text = await read_plan(tf)
    spec, mask = tf.spec, tf.context.mask
    document = describe_plan(saved, mask, tool=spec.tool, destroy=spec.destroy)
    if spec.policies:
        subject = f'{{"plan": {text}}}'.encode()
        findings = await check_policies(tf.context, opa, spec.policies, subject)
        document = document.model_copy(update={"policies": findings})
    with tf.context.workspace.touch():
        data = tf.plan_file.read_bytes()
    digest = await hand_in_plan(tf.context.job.uplink, sealer, spec.workspace, data, document)
    # A plan of Terraform does not know whether it is a scan.
    outputs = _build_outputs(tf, document, saved, digest)
    return end_plan(document, outputs, reports_drift=not spec.destroy)


def _build_outputs(
    tf: TerraformContext, document: PlanDocument, saved: SavedPlan, digest: str
) -> dict[str, JsonValue]:
    noop = is_noop(document)
    header = None if tf.store.newest is None else tf.store.newest.header
    outputs: dict[str, JsonValue] = {
        "digest": digest,
        "noop": noop,
        "serial": 0 if header is None else header.serial,
        "lineage": "" if header is None else header.lineage,
    }
    if noop:
        now, hidden = split_outputs(saved.planned_outputs, tf.spec.workspace, tf.context.mask)
        outputs |= {"outputs": now, "sensitive_outputs": list[JsonValue](hidden)}
    return outputs
