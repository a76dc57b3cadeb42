"""`exclave workflows approve`, `deny`, `retry`, `skip`, `event`, `approve-all` and `cancel`."""

import click

from exclave.base.errors import Conflict, InvalidInput, NotFound
from exclave.base.printable import dump_json
from exclave.cli.deps import Session, verb, yes_option
from exclave.cli.inputs import build, read_document, read_pairs
from exclave.cli.lookup import find_workflow, workflow_argument
from exclave.cli.output import show_time
from exclave.cli.root import SuggestingGroup
from exclave.cli.terminal import clean_line, indent, join
from exclave.cli.workflows.graph import describe_state, draw_graph
from exclave.cli.workflows.plans import find_plan, format_plan
from exclave.wire.workflows import (
    Approve,
    Deny,
    SendEvent,
    SetApproveAll,
    SkipStep,
    StepKind,
    StepReply,
    StepState,
    WorkflowReply,
)

group = SuggestingGroup("workflows")

_step = click.argument("step")
_gate = click.argument("step", metavar="[GATE]", required=False)
_digest = click.option(
    "--digest", help="Digest of the plan that you decide about; see `workflows get`."
)
_comment = click.option("--comment", default="", help="Comment; recorded with the decision.")


@verb(group, "approve")
@workflow_argument
@_gate
@_digest
@_comment
async def approve(
    session: Session, workflow: str, step: str | None, digest: str | None, comment: str
) -> None:
    """Approve the plan of a gate; without --digest the plan is shown and you are asked.

    GATE can be left out if only one gate is waiting.
    """
    workflow_id = await find_workflow(session, workflow)
    gate = step or await _find_gate(session, workflow_id)
    bound = digest or await _ask_digest(session, workflow_id, gate, "Approve")
    body = build(Approve, digest=bound, comment=comment)
    show_workflow(session, await session.client.workflows.approve(workflow_id, gate, body))


@verb(group, "deny")
@workflow_argument
@_gate
@_digest
@_comment
@click.option(
    "--skip", is_flag=True, help="Continue without this step and the steps that depend on it."
)
async def deny(
    session: Session,
    workflow: str,
    step: str | None,
    digest: str | None,
    comment: str,
    *,
    skip: bool,
) -> None:
    """Deny the plan of a gate; without --digest the plan is shown and you are asked."""
    workflow_id = await find_workflow(session, workflow)
    gate = step or await _find_gate(session, workflow_id)
    bound = digest or await _ask_digest(session, workflow_id, gate, "Deny")
    body = build(Deny, digest=bound, comment=comment, skip=skip)
    show_workflow(session, await session.client.workflows.deny(workflow_id, gate, body))


@verb(group, "retry")
@workflow_argument
@_step
async def retry(session: Session, workflow: str, step: str) -> None:
    """Run a failed or lost step again; an apply is planned and approved again."""
    workflow_id = await find_workflow(session, workflow)
    show_workflow(session, await session.client.workflows.retry(workflow_id, step))


@verb(group, "skip")
@workflow_argument
@_step
@click.option("--reason", required=True, help="Reason; recorded in the audit log.")
async def skip(session: Session, workflow: str, step: str, reason: str) -> None:
    """Continue a workflow without a step."""
    workflow_id = await find_workflow(session, workflow)
    body = build(SkipStep, reason=reason)
    show_workflow(session, await session.client.workflows.skip(workflow_id, step, body))


@verb(group, "event")
@workflow_argument
@_step
@click.option(
    "--output",
    "pairs",
    multiple=True,
    metavar="KEY=VALUE",
    help="Output of the event. Can be repeated.",
)
@click.option(
    "--outputs", "file", metavar="FILE", help="JSON or TOML file with outputs; `-` reads stdin."
)
async def event(
    session: Session, workflow: str, step: str, pairs: tuple[str, ...], file: str | None
) -> None:
    """Send the event that a step waits for, with optional outputs."""
    workflow_id = await find_workflow(session, workflow)
    outputs = {**(read_document(file) if file else {}), **read_pairs(pairs, "--output")}
    body = build(SendEvent, outputs=outputs)
    show_workflow(session, await session.client.workflows.send_event(workflow_id, step, body))


@verb(group, "approve-all")
@workflow_argument
@click.option("--off", is_flag=True, help="Ask again at all gates that are not reached yet.")
@yes_option
async def approve_all(session: Session, workflow: str, *, off: bool, yes: bool) -> None:
    """Approve all gates of a workflow, now and in the future."""
    workflow_id = await find_workflow(session, workflow)
    if not off:
        session.confirm(f"Approve all plans of {workflow_id} without review?", yes=yes)
    body = SetApproveAll(approve_all=not off)
    show_workflow(session, await session.client.workflows.set_approve_all(workflow_id, body))


@verb(group, "cancel")
@workflow_argument
@yes_option
async def cancel(session: Session, workflow: str, *, yes: bool) -> None:
    """Cancel a workflow; running jobs get time to stop cleanly."""
    workflow_id = await find_workflow(session, workflow)
    session.confirm(f"Cancel the workflow {workflow_id}?", yes=yes)
    show_workflow(session, await session.client.workflows.cancel(workflow_id))


def show_workflow(session: Session, workflow: WorkflowReply) -> None:
    """Print a workflow with its graph."""
    flags = {
        "approve-all": workflow.approve_all,
        "plan-only": workflow.plan_only,
        "cancel asked": workflow.cancel_requested,
    }
    pairs = [
        ("name", workflow.name),
        ("id", workflow.id),
        ("state", workflow.state),
        ("queue", workflow.queue_id),
        ("flags", ", ".join(name for name, is_set in flags.items() if is_set)),
        ("by", workflow.created_by),
        ("created", show_time(workflow.created_at)),
        ("finished", show_time(workflow.finished_at)),
    ]
    lines: list[str] = [session.out.details(pairs), ""]
    lines += draw_graph(workflow, session.deps.clock.now(), session.out.paint)
    for step in workflow.steps:
        if _is_open_gate(step):
            lines += ["", clean_line(f"`{step.name}` asks for approval of {step.digest}")]
    hints = dict.fromkeys(s.blocked_by.hint for s in workflow.steps if s.blocked_by is not None)
    lines += [line for hint in hints for line in ("", f"hint: {hint}")]
    session.out.show(workflow, join(lines))


async def _find_gate(session: Session, workflow_id: str) -> str:
    """Return the only gate that waits; raise if there are none or several."""
    workflow = await session.client.workflows.get(workflow_id)
    gates = [step.name for step in workflow.steps if _is_open_gate(step)]
    if len(gates) == 1:
        return gates[0]
    if not gates:
        raise Conflict("no gate of the workflow waits for approval")
    raise InvalidInput("several gates are waiting: name one", hint=f"They are: {', '.join(gates)}.")


async def _ask_digest(session: Session, workflow_id: str, name: str, answer: str) -> str:
    if not session.deps.can_ask:
        raise InvalidInput(
            "a decision about a gate needs a digest, and there is no terminal to ask",
            hint=f"Look with `exclave workflows get {workflow_id}`, then add --digest.",
        )
    workflow = await session.client.workflows.get(workflow_id)
    by_name = {step.name: step for step in workflow.steps}
    if name not in by_name:
        steps = ", ".join(by_name)
        raise NotFound(f"the workflow has no step `{name}`", hint=f"It has: {steps}.")
    step = by_name[name]
    if not _is_open_gate(step):
        raise Conflict(f"`{name}` does not wait for approval: it is {describe_state(step)}")
    await _show_what_is_asked(session, step, [by_name[need] for need in step.needs])
    session.confirm(f"{answer} this?", yes=False)
    return step.digest


async def _show_what_is_asked(session: Session, step: StepReply, needs: list[StepReply]) -> None:
    session.out.say(clean_line(f"`{step.name}` asks for approval of {step.digest}, after:"))
    for need in needs:
        plan = await find_plan(session, need)
        if plan is not None:
            session.out.say(f"  {clean_line(need.name)}\n\n" + format_plan(session, plan) + "\n")
            continue
        line = f"  {need.name}: {describe_state(need)} {need.digest}".rstrip()
        session.out.say(indent(line, "      "))
        if need.message:
            session.out.say(indent(f"    {need.message}", "    "))
        for key, value in need.outputs.items():
            session.out.say(f"    {clean_line(key)} = {dump_json(value)}")
        if need.job_id:
            session.out.say(f"    log: exclave logs tail {need.job_id}")


def _is_open_gate(step: StepReply) -> bool:
    return step.kind is StepKind.GATE and step.state is StepState.ACTIVE
