"""Applies exactly the plan that was approved, and writes down what it does while it does it."""

import asyncio
import hashlib
import hmac
import signal

from exclave.client.problems import RemoteProblem
from exclave.runner.commands import terraform
from exclave.runner.control_plane.execution_api import PATIENCE
from exclave.runner.jobs.executor import MESSAGE_CHARS, WorkFailed, fail
from exclave.runner.secrets.sealing import Purpose, SealBroken, Sealer
from exclave.runner.terraform.diagnostics import explain
from exclave.runner.terraform.errored_state import rescue_all, was_left
from exclave.runner.terraform.journal import Journal, send_regularly
from exclave.runner.terraform.messages import MessageLog
from exclave.runner.terraform.outputs import tell_outputs
from exclave.runner.terraform.plan import PLAN, run_init
from exclave.runner.terraform.tool_context import Halted, Site, end_task
from exclave.runner.terraform.unsent_state import has_pending_state
from exclave.wire.jobs import JsonValue, OutcomeState, Reason
from exclave.wire.runner import Outcome

_MISSING = 404


async def apply(site: Site, sealer: Sealer) -> Outcome:
    """Do the whole job; nothing is changed before the plan is proven to be the approved one."""
    site.workspace.write(site.plan_file, await fetch_plan(site, sealer))
    await run_init(site)
    journal = Journal(site.work.folder, site.spec.workspace, site.mask)
    sending = asyncio.create_task(send_regularly(site.work.folder, site.work.uplink, site.clock))
    messages = MessageLog(site.log, journal.note)
    try:
        outcome = await _run(site, messages, journal)
        journal.end()
    finally:
        journal.close()
        sending.cancel()
    await end_task(sending)
    unsaved = was_left(site.work.folder)
    await rescue_all(site.work.folder, site.work.uplink, sealer, PATIENCE, site.mask)
    return _judge_state(site, outcome, unsaved=unsaved)


async def fetch_plan(site: Site, sealer: Sealer) -> bytes:
    """Fetch the plan and prove that it is the one that was made and approved."""
    spec, uplink, approved = site.spec, site.work.uplink, site.work.dispatch.approved_digest
    if spec.plan is None:
        raise WorkFailed(Reason.PLAN_MISSING, "the job names no plan")
    try:
        sealed = await uplink.get_attachment(spec.plan.execution_id, "plan.sealed")
    except RemoteProblem as problem:
        if problem.status != _MISSING:
            raise
        message = "the approved plan is not there any more: plan again"
        raise WorkFailed(Reason.PLAN_MISSING, message) from problem
    purpose = Purpose(uplink.org_id, uplink.queue_id, spec.workspace, PLAN)
    try:
        data = sealer.unseal(sealed, purpose)
    except SealBroken as problem:
        message = f"the approved plan cannot be trusted: {problem.message}. {problem.advice}"
        raise WorkFailed(Reason.PLAN_MISSING, message) from problem
    digest = "sha256:" + hashlib.sha256(data).hexdigest()
    for wanted in (spec.plan.digest, approved or spec.plan.digest):
        if not hmac.compare_digest(digest, wanted):
            message = f"the plan has the digest {digest}, but {wanted} was approved: plan again"
            raise WorkFailed(Reason.PLAN_MISSING, message)
    return data


async def _run(site: Site, messages: MessageLog, journal: Journal) -> Outcome:
    argv = terraform.apply(site.tool, site.plan_file)
    try:
        code = await site.run("apply", argv, log=messages)
    except Halted as halted:
        return _judge_halt(halted, journal)
    if code == 0:
        return _succeed(site, messages)
    if code < 0 and journal.events:
        message = (
            f"`apply` was ended by {_name_signal(-code)} in mid-work: what it made last may be"
            " missing in the state; see `installs orphans`"
        )
        return _interrupt(Reason.EXIT_CODE, message)
    reason, message = explain("apply", messages.errors, "")
    return fail(reason, message, code)


def _judge_halt(halted: Halted, journal: Journal) -> Outcome:
    """Tell a peaceful end from one by force, after which nobody knows what is in the state."""
    forced = halted.ended is not None and halted.ended.code == -signal.SIGKILL
    if not forced or not journal.events:
        return halted.outcome
    message = f"{halted.outcome.message}; it had to be killed: see `installs orphans`"
    return _interrupt(halted.outcome.reason, message)


def _judge_state(site: Site, outcome: Outcome, *, unsaved: bool) -> Outcome:
    """A state that Terraform could not store makes every other outcome a lie."""
    refused = site.store.refused
    if refused is None and not unsaved:
        return outcome
    why = "nobody answered" if refused is None else f"{refused.message}. {refused.advice}".strip()
    kept = has_pending_state(site.work.folder)
    what = "the runner keeps it and sends it again" if kept else "it was handed in afterwards"
    message = (
        f"the state could not be stored ({why}); {what}, see `errored.tfstate.sealed` and"
        f" `installs tf-state show`. The apply itself had ended as {outcome.state}:"
        f" {outcome.message}"
    )
    halted = outcome.state is OutcomeState.INTERRUPTED
    return _interrupt(outcome.reason if halted else Reason.STATE_REFUSED, message)


def _succeed(site: Site, messages: MessageLog) -> Outcome:
    newest = site.store.newest
    told, hidden = tell_outputs(
        {} if newest is None else newest.outputs, site.spec.workspace, site.mask
    )
    outputs: dict[str, JsonValue] = {
        "outputs": told,
        "sensitive_outputs": list[JsonValue](hidden),
        "serial": 0 if newest is None else newest.header.serial,
        "lineage": "" if newest is None else newest.header.lineage,
        "summary": {
            name: messages.summary.get(key, 0)
            for name, key in (
                ("add", "add"),
                ("change", "change"),
                ("destroy", "remove"),
                ("import", "import"),
            )
        },
    }
    return Outcome(
        state=OutcomeState.SUCCEEDED, reason=Reason.COMPLETED, exit_code=0, outputs=outputs
    )


def _interrupt(reason: Reason, message: str) -> Outcome:
    return Outcome(state=OutcomeState.INTERRUPTED, reason=reason, message=message[:MESSAGE_CHARS])


def _name_signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
