"""Plans as text: what is created, changed, replaced and destroyed, and why."""

from collections.abc import Iterator

import click

from exclave.base.errors import NotFound, Problem
from exclave.base.printable import dump_json
from exclave.cli.deps import Session, verb
from exclave.cli.lookup import find_workflow, workflow_argument
from exclave.cli.root import SuggestingGroup
from exclave.cli.terminal import Styled, clean_line, indent, join, style
from exclave.cli.workflows.graph import describe_state
from exclave.wire.plans import PlanAttribute, PlanDocument, PlannedOutput, PlannedResource
from exclave.wire.workflows import StepReply, WorkflowReply

workflows = SuggestingGroup("workflows")
jobs = SuggestingGroup("jobs")

_SIGNS = {
    "create": ("+", "green", "will be created"),
    "update": ("~", "yellow", "will be changed"),
    "replace": ("±", "magenta", "must be replaced"),
    "delete": ("-", "red", "will be destroyed"),
    "read": ("≤", "cyan", "will be read during apply"),
    "import": ("→", "cyan", "will be imported"),
    "move": ("→", "cyan", "has moved"),
    "forget": (".", "yellow", "will be forgotten, and stays as it is"),
    "keep": (".", "cyan", "stays"),
    "run": ("▸", "cyan", "will be run"),
    "no-op": (" ", "white", "does not change"),
}
_REASONS = {
    "replace_because_tainted": "it is tainted",
    "replace_because_cannot_update": "it cannot be changed in place",
    "replace_by_request": "its replacement was requested",
    "replace_by_triggers": "one of its replacement triggers changes",
    "delete_because_no_resource_config": "it is no longer in the module",
    "delete_because_no_module": "its module is gone",
    "delete_because_count_index": "its index is beyond `count`",
    "delete_because_each_key": "its key is not in `for_each`",
    "delete_because_wrong_repetition": "its `count` or `for_each` changed",
}
_MOST_CHARS = 200


@verb(workflows, "plan")
@workflow_argument
@click.argument("step", required=False)
@click.option("--wait", is_flag=True, help="Wait until STEP has a plan.")
async def show_workflow_plan(
    session: Session, workflow: str, step: str | None, *, wait: bool
) -> None:
    """Show the plan of a step or a gate; without STEP all plans of the workflow."""
    if wait and step is None:
        raise click.UsageError("--wait needs a STEP")
    workflow_id = await find_workflow(session, workflow)
    if wait and step is not None:
        reply = await _wait_for_plan(session, workflow_id, step)
    else:
        reply = await session.client.workflows.get(workflow_id)
    chosen = list(_choose(reply, step))
    if not chosen:
        raise NotFound(_format_none(reply, step), hint=f"See `exclave workflows get {reply.id}`.")
    plans = {shown.name: await _fetch(session, shown) for shown in chosen}
    if step is not None:
        only = next(iter(plans.values()))
        session.out.show(only.model_dump(mode="json", by_alias=True), format_plan(session, only))
        return
    texts = [f"{name}\n" + format_plan(session, plan) for name, plan in plans.items()]
    documents = {name: plan.model_dump(mode="json", by_alias=True) for name, plan in plans.items()}
    session.out.show(documents, join(texts, "\n\n"))


@verb(jobs, "plan")
@click.argument("job_id", metavar="ID")
async def show_job_plan(session: Session, job_id: str) -> None:
    """Show the plan that a job made."""
    plan = await session.client.terraform.get_plan(job_id)
    session.out.show(plan.model_dump(mode="json", by_alias=True), format_plan(session, plan))


async def find_plan(session: Session, step: StepReply) -> PlanDocument | None:
    """Return the plan that a step made; None if it made none or the plan is gone."""
    if step.job_id is None or "digest" not in step.outputs:
        return None
    try:
        return await _fetch(session, step)
    except Problem:
        return None


def format_plan(session: Session, plan: PlanDocument) -> Styled:
    """Return a plan as text."""
    parts = [join(_format_resource(session, resource)) for resource in plan.resources]
    if plan.drift:
        lines = [
            f"  {clean_line(drifted.address)} {_SIGNS[drifted.action][2]}" for drifted in plan.drift
        ]
        is_cluster = plan.tool in {"helm", "kubernetes"}
        who = "Changed in the cluster by others:" if is_cluster else "Changed outside of Terraform:"
        parts.insert(0, join([who, *lines]))
    parts += [join(part) for part in _format_remarks(session, plan) if part]
    if plan.outputs:
        parts.append(
            join(["Outputs:", *(_format_output(session, output) for output in plan.outputs)])
        )
    if plan.policies:
        parts.append(join(_format_policies(session, plan)))
    return join([*parts, format_summary(plan)], "\n\n")


def format_summary(plan: PlanDocument) -> str:
    """Return a summary of a plan in one line."""
    summary = plan.summary
    counts = (
        (summary.imported, "to import"),
        (summary.add, "to add"),
        (summary.change, "to change"),
        (summary.replace, "to replace"),
        (summary.move, "moved"),
        (summary.destroy, "to destroy"),
        (summary.run, "to run"),
        (summary.keep, "to keep"),
    )
    shown = [f"{count} {what}" for count, what in counts if count]
    if summary.outputs and not shown:
        shown = ["only outputs change"]
    return f"Plan: {', '.join(shown)}." if shown else "Plan: nothing to do."


async def _wait_for_plan(session: Session, workflow_id: str, step: str) -> WorkflowReply:
    """Wait until a step has made its plan, or never will."""
    async for reply in session.client.workflows.follow(workflow_id, session.out.warn):
        chosen = list(_choose(reply, step))
        if chosen and all(selected.state.is_over for selected in chosen):
            break
    return reply


def _format_none(workflow: WorkflowReply, step: str | None) -> str:
    if step is None:
        return "no step of the workflow has made a plan yet"
    named = next(candidate for candidate in workflow.steps if candidate.name == step)
    return f"`{step}` has no plan to show: it is {describe_state(named)}"


def _choose(workflow: WorkflowReply, step: str | None) -> Iterator[StepReply]:
    """Yield the steps with a plan: the named one, those that a named gate needs, or all."""
    by_name = {step.name: step for step in workflow.steps}
    if step is None:
        yield from (step for step in workflow.steps if step.job_id and "digest" in step.outputs)
        return
    if step not in by_name:
        raise NotFound(f"the workflow has no step `{step}`")
    wanted = by_name[step]
    if wanted.job_id is not None:
        yield wanted
        return
    needed = [by_name[name] for name in wanted.needs if name in by_name]
    yield from (
        candidate
        for candidate in needed
        if candidate.job_id is not None and "digest" in candidate.outputs
    )


async def _fetch(session: Session, step: StepReply) -> PlanDocument:
    return await session.client.terraform.get_plan(str(step.job_id))


def _format_resource(session: Session, resource: PlannedResource) -> Iterator[Styled]:
    sign, colour, what = _SIGNS[resource.action]
    was = f" (was {clean_line(resource.previous)})" if resource.previous else ""
    why = _REASONS.get(resource.reason, "") or ", ".join(map(clean_line, resource.events))
    head = f"{sign} {clean_line(resource.address)} {what}{was}" + (f": {why}" if why else "")
    yield _paint(session, head, colour)
    width = max((len(clean_line(attribute.path)) for attribute in resource.attributes), default=0)
    for attribute in resource.attributes:
        yield _format_attribute(session, resource.action, attribute, width)
    for field in resource.taken_from:
        text = f"  ! takes over {clean_line(field.path)} from {clean_line(field.manager)}"
        yield _paint(session, text, "magenta")
    for note in resource.notes:
        yield clean_line(f"    ({note})")


def _format_remarks(session: Session, plan: PlanDocument) -> Iterator[list[Styled]]:
    yield [_paint(session, f"Warning: {clean_line(text)}", "yellow") for text in plan.warnings]
    yield [clean_line(f"Note: {text}") for text in plan.notes]
    images = [clean_line(f"  {image}") for image in plan.outside_images]
    yield [clean_line("Images from outside of the app:"), *images] if images else []


def _format_attribute(
    session: Session, action: str, attribute: PlanAttribute, width: int
) -> Styled:
    forced = "  # forces replacement" if attribute.forces_replacement else ""
    forced += "  # ignored in scans" if attribute.ignored else ""
    name = f"{clean_line(attribute.path):<{width}}"
    if attribute.sensitive:
        return clean_line(f"    {name}  (sensitive){forced}")
    before, after = _format_value(attribute.before), _format_value(attribute.after)
    after = "(known after apply)" if attribute.unknown else after
    if action in {"create", "import"} or (attribute.before is None and action != "delete"):
        return _paint(session, f"  + {name}  {after}{forced}", "green")
    if action == "delete" or (attribute.after is None and not attribute.unknown):
        return _paint(session, f"  - {name}  {before}{forced}", "red")
    return _paint(session, f"  ~ {name}  {before} → {after}{forced}", "yellow")


def _format_output(session: Session, output: PlannedOutput) -> Styled:
    sign, colour, _ = _SIGNS[output.action]
    name = clean_line(output.name)
    if output.sensitive:
        return _paint(session, f"  {sign} {name}  (sensitive)", colour)
    before, after = _format_value(output.before), _format_value(output.after)
    after = "(known after apply)" if output.unknown else after
    value = {"create": after, "delete": before}.get(output.action, f"{before} → {after}")
    return _paint(session, f"  {sign} {name}  {value}", colour)


def _format_policies(session: Session, plan: PlanDocument) -> Iterator[str]:
    yield "Policies:"
    for policy in plan.policies:
        colour = {"deny": "red", "warn": "yellow", "pass": "green"}[policy.level]
        about = f"{clean_line(policy.resource)}: " if policy.resource else ""
        message = f"{about}{indent(policy.message, '    ')}"
        yield _paint(session, f"  {policy.level} {clean_line(policy.name)}: {message}", colour)


def _format_value(value: object) -> str:
    text = dump_json(value)
    return text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}…"


def _paint(session: Session, text: str, colour: str) -> Styled:
    return style(text, colour, on=session.out.colour)
