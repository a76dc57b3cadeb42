"""Plans a module: init, plan, policies; uploads the encrypted plan and a readable document."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from exclave.runner.commands import terraform
from exclave.runner.outcomes import WorkFailed, fail
from exclave.runner.secrets.sealing import Purpose, Sealer
from exclave.runner.terraform.diagnostics import explain
from exclave.runner.terraform.messages import MessageLog
from exclave.runner.terraform.outputs import split_outputs
from exclave.runner.terraform.plan_document import describe_plan, is_noop
from exclave.runner.terraform.policies import check_policies
from exclave.runner.terraform.saved_plan import SavedPlan, parse_plan
from exclave.runner.terraform.tool_context import TerraformContext
from exclave.wire.jobs import JsonValue, OutcomeState, Reason
from exclave.wire.runner import Outcome
from exclave.wire.terraform import PlanDocument, PolicyFinding

PLAN = "plan"
"""The purpose of an encrypted plan."""


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


async def hand_in_plan(tf: TerraformContext, sealer: Sealer, document: PlanDocument) -> str:
    """Upload the encrypted plan and the readable document; return the digest of the plan."""
    with tf.context.workspace.touch():
        data = tf.plan_file.read_bytes()
    uplink, spec = tf.context.job.uplink, tf.spec
    purpose = Purpose(uplink.org_id, uplink.queue_id, spec.workspace, PLAN)
    await uplink.put_attachment("plan.sealed", sealer.seal(data, purpose))
    content = document.model_dump_json(by_alias=True).encode()
    await uplink.put_attachment("plan.json", content)
    return "sha256:" + hashlib.sha256(data).hexdigest()


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
        findings = await check_policies(tf, opa, text)
        document = document.model_copy(update={"policies": findings})
    digest = await hand_in_plan(tf, sealer, document)
    denied = [finding for finding in document.policies if finding.level == "deny"]
    outputs = _build_outputs(tf, document, saved, digest)
    if denied:
        message = "\n".join(
            f"policy `{finding.name}` denies this plan: {finding.message}" for finding in denied
        )
        return fail(Reason.POLICY_DENIED, message).model_copy(update={"outputs": outputs})
    return Outcome(
        state=OutcomeState.SUCCEEDED, reason=Reason.COMPLETED, exit_code=0, outputs=outputs
    )


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
        "summary": document.summary.model_dump(by_alias=True),
        "policies": {"warn": _list_warnings(document.policies)},
    }
    if noop:
        now, hidden = split_outputs(saved.planned_outputs, tf.spec.workspace, tf.context.mask)
        outputs |= {"outputs": now, "sensitive_outputs": list[JsonValue](hidden)}
    return outputs


def _list_warnings(findings: list[PolicyFinding]) -> list[JsonValue]:
    return [f"{finding.name}: {finding.message}" for finding in findings if finding.level == "warn"]
