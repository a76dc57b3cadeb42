"""The verbs of `exclave workflows` by which people answer and steer a workflow."""

import json

import click

from exclave.base.errors import Conflict, InvalidInput, NotFound
from exclave.cli.deps import Session, verb, yes_option
from exclave.cli.errors import clean
from exclave.cli.graph import describe_state, draw_graph
from exclave.cli.inputs import build, read_document, read_pairs
from exclave.cli.output import show_time
from exclave.cli.root import SuggestingGroup
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

_workflow = click.argument("workflow_id", metavar="ID")
_step = click.argument("step")
_digest = click.option("--digest", help="What exactly is answered; shown by `workflows get`.")
_comment = click.option("--comment", default="", help="Kept with the answer.")


@verb(group, "approve")
@_workflow
@_step
@_digest
@_comment
async def approve(
    session: Session, workflow_id: str, step: str, digest: str | None, comment: str
) -> None:
    """Approve exactly what a gate shows; without --digest it is shown and you are asked."""
    bound = digest or await _ask_digest(session, workflow_id, step, "Approve")
    body = build(Approve, digest=bound, comment=comment)
    show_workflow(session, await session.client.answer_step(workflow_id, step, "approve", body))


@verb(group, "deny")
@_workflow
@_step
@_digest
@_comment
@click.option("--skip", is_flag=True, help="Go on without the step and what needs it.")
async def deny(
    session: Session, workflow_id: str, step: str, digest: str | None, comment: str, *, skip: bool
) -> None:
    """Refuse what a gate shows; without --digest it is shown and you are asked."""
    bound = digest or await _ask_digest(session, workflow_id, step, "Deny")
    body = build(Deny, digest=bound, comment=comment, skip=skip)
    show_workflow(session, await session.client.answer_step(workflow_id, step, "deny", body))


@verb(group, "retry")
@_workflow
@_step
async def retry(session: Session, workflow_id: str, step: str) -> None:
    """Try a failed or lost step again."""
    show_workflow(session, await session.client.answer_step(workflow_id, step, "retry"))


@verb(group, "skip")
@_workflow
@_step
@click.option("--reason", required=True, help="Why; it is kept in the audit log.")
async def skip(session: Session, workflow_id: str, step: str, reason: str) -> None:
    """Go on without a step."""
    body = build(SkipStep, reason=reason)
    show_workflow(session, await session.client.answer_step(workflow_id, step, "skip", body))


@verb(group, "event")
@_workflow
@_step
@click.option("--output", "pairs", multiple=True, metavar="KEY=VALUE", help="May be repeated.")
@click.option("--outputs", "file", metavar="FILE", help="A JSON or TOML object; `-` is stdin.")
async def event(
    session: Session, workflow_id: str, step: str, pairs: tuple[str, ...], file: str | None
) -> None:
    """Send the event that a step waits for, with what came of it."""
    outputs = {**(read_document(file) if file else {}), **read_pairs(pairs, "--output")}
    body = build(SendEvent, outputs=outputs)
    show_workflow(session, await session.client.answer_step(workflow_id, step, "event", body))


@verb(group, "approve-all")
@_workflow
@click.option("--off", is_flag=True, help="Ask again at the gates that are still to come.")
@yes_option
async def approve_all(session: Session, workflow_id: str, *, off: bool, yes: bool) -> None:
    """Approve all gates of a workflow, those to come as well."""
    if not off:
        session.confirm(f"Approve all that {workflow_id} is going to do, unseen?", yes=yes)
    body = SetApproveAll(approve_all=not off)
    show_workflow(session, await session.client.set_approve_all(workflow_id, body))


@verb(group, "cancel")
@_workflow
@yes_option
async def cancel(session: Session, workflow_id: str, *, yes: bool) -> None:
    """Ask for the end of a workflow; running jobs get time to stop cleanly."""
    session.confirm(f"Cancel the workflow {workflow_id}?", yes=yes)
    show_workflow(session, await session.client.cancel_workflow(workflow_id))


def show_workflow(session: Session, workflow: WorkflowReply) -> None:
    """Show a workflow with its graph."""
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
    lines = [session.out.details(pairs), ""]
    lines += draw_graph(workflow, session.deps.clock.now(), session.out.paint)
    for step in workflow.steps:
        if _is_open_gate(step):
            lines += ["", f"`{step.name}` asks for approval of {step.digest}"]
    session.out.show(workflow, "\n".join(lines))


async def _ask_digest(session: Session, workflow_id: str, name: str, answer: str) -> str:
    if not session.deps.can_ask:
        raise InvalidInput(
            "an answer to a gate is bound to a digest, and there is no terminal to ask",
            hint=f"Look with `exclave workflows get {workflow_id}`, then add --digest.",
        )
    workflow = await session.client.get_workflow(workflow_id)
    found = {step.name: step for step in workflow.steps}
    if name not in found:
        steps = ", ".join(found)
        raise NotFound(f"the workflow has no step `{name}`", hint=f"It has: {steps}.")
    step = found[name]
    if not _is_open_gate(step):
        raise Conflict(f"`{name}` does not wait for approval: it is {describe_state(step)}")
    _show_what_is_asked(session, step, [found[need] for need in step.needs])
    session.confirm(f"{answer} this?", yes=False)
    return step.digest


def _show_what_is_asked(session: Session, step: StepReply, needs: list[StepReply]) -> None:
    session.out.say(f"`{step.name}` asks for approval of {step.digest}, after:")
    for need in needs:
        session.out.say(f"  {need.name}: {describe_state(need)} {need.digest}".rstrip())
        if need.message:
            session.out.say(f"    {clean(need.message)}")
        for key, value in need.outputs.items():
            session.out.say(f"    {clean(key)} = {clean(json.dumps(value, ensure_ascii=False))}")
        if need.job_id:
            session.out.say(f"    log: exclave logs tail {need.job_id}")


def _is_open_gate(step: StepReply) -> bool:
    return step.kind is StepKind.GATE and step.state is StepState.ACTIVE
