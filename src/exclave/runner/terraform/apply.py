"""Applies exactly the approved plan, and keeps a journal meanwhile."""

from exclave.runner.commands import terraform
from exclave.runner.control_plane.execution_api import PATIENCE
from exclave.runner.jobs.shell import name_signal
from exclave.runner.outcomes import MESSAGE_CHARS, Stopped, fail
from exclave.runner.plans.sealed_plans import fetch_plan
from exclave.runner.secrets.sealing import Sealer
from exclave.runner.states.journal_file import keep_journal
from exclave.runner.states.unsent_state import has_pending_state
from exclave.runner.terraform.context import TerraformContext
from exclave.runner.terraform.diagnostics import explain
from exclave.runner.terraform.errored_state import rescue_all, was_left
from exclave.runner.terraform.journal import Journal
from exclave.runner.terraform.messages import MessageLog
from exclave.runner.terraform.outputs import split_outputs
from exclave.runner.terraform.plan import run_init
from exclave.wire.jobs import JsonValue, OutcomeState, Reason
from exclave.wire.runner import Outcome


async def apply(tf: TerraformContext, sealer: Sealer) -> Outcome:
    """Run an apply job; nothing is changed before the plan is verified to be the approved one."""
    job, mask = tf.context.job, tf.context.mask
    data = await fetch_plan(job, sealer, tf.spec.workspace, tf.spec.plan)
    tf.context.workspace.write(tf.plan_file, data)
    await run_init(tf)
    async with keep_journal(tf.context, tf.spec.workspace, Journal) as journal:
        messages = MessageLog(tf.context.log, journal.note)
        outcome = await _run(tf, messages, journal)
    unsaved = was_left(job.folder)
    await rescue_all(job.folder, job.uplink, sealer, PATIENCE, mask)
    return _check_state(tf, outcome, unsaved=unsaved)


async def _run(tf: TerraformContext, messages: MessageLog, journal: Journal) -> Outcome:
    argv = terraform.apply(tf.tool, tf.plan_file)
    try:
        code = await tf.run("apply", argv, log=messages)
    except Stopped as stopped:
        return _describe_stop(stopped, journal)
    if code == 0:
        return _succeed(tf, messages)
    if code < 0 and journal.events:
        message = (
            f"`apply` was ended by {name_signal(-code)} in mid-work: what it made last may be"
            " missing in the state; see `installs orphans`"
        )
        return _interrupt(Reason.EXIT_CODE, message)
    reason, message = explain("apply", messages.errors, "")
    return fail(reason, message, code)


def _describe_stop(stopped: Stopped, journal: Journal) -> Outcome:
    """Return the outcome of a stopped apply; after a SIGKILL the state may miss resources."""
    if not stopped.killed or not journal.events:
        return stopped.outcome
    message = f"{stopped.outcome.message}; it had to be killed: see `installs orphans`"
    return _interrupt(stopped.outcome.reason, message)


def _check_state(tf: TerraformContext, outcome: Outcome, *, unsaved: bool) -> Outcome:
    """Return the outcome, or an interruption if Terraform could not store the state."""
    refused = tf.store.sealed.refused
    if refused is None and not unsaved:
        return outcome
    why = (
        "there was no response"
        if refused is None
        else f"{refused.message}. {refused.advice}".strip()
    )
    kept = has_pending_state(tf.context.job.folder)
    what = "the runner keeps it and sends it again" if kept else "it was uploaded afterwards"
    message = (
        f"the state could not be stored ({why}); {what}, see `errored.tfstate.sealed` and"
        f" `installs tf-state show`. The apply itself had ended as {outcome.state}:"
        f" {outcome.message}"
    )
    halted = outcome.state is OutcomeState.INTERRUPTED
    return _interrupt(outcome.reason if halted else Reason.STATE_REFUSED, message)


def _succeed(tf: TerraformContext, messages: MessageLog) -> Outcome:
    newest = tf.store.newest
    public_outputs, hidden = split_outputs(
        {} if newest is None else newest.outputs, tf.spec.workspace, tf.context.mask
    )
    outputs: dict[str, JsonValue] = {
        "outputs": public_outputs,
        "sensitive_outputs": list[JsonValue](hidden),
        "serial": 0 if newest is None else newest.header.serial,
        "lineage": "" if newest is None else newest.header.lineage,
        "summary": {
            "add": messages.counts.add,
            "change": messages.counts.change,
            "destroy": messages.counts.remove,
            "import": messages.counts.imported,
        },
    }
    return Outcome(
        state=OutcomeState.SUCCEEDED, reason=Reason.COMPLETED, exit_code=0, outputs=outputs
    )


def _interrupt(reason: Reason, message: str) -> Outcome:
    return Outcome(state=OutcomeState.INTERRUPTED, reason=reason, message=message[:MESSAGE_CHARS])
