"""Runbooks: deploys, teardowns, actions and waits in the order in which they are written."""

from exclave.base.errors import InvalidInput
from exclave.flow.plans.deploys import (
    draw_all_deploys,
    draw_deploys,
    draw_plans,
    draw_teardowns,
)
from exclave.flow.plans.drafts import Drawing, Front, draw_sandbox, slug
from exclave.flow.plans.intents import AwaitEvent, RunAction
from exclave.flow.plans.outline import Outline, Request, RunbookStep


def draw_runbook(drawing: Drawing, outline: Outline, request: Request, front: Front) -> None:
    """Draw the steps of a runbook one after the other."""
    for step in request.runbook_steps:
        front = _draw_step(drawing, outline, request, step, front)


def _draw_step(
    drawing: Drawing, outline: Outline, request: Request, step: RunbookStep, front: Front
) -> Front:
    match step.type:
        case "component_deploy":
            return _draw_deploy(drawing, outline, step, front)
        case "component_tear_down":
            return _draw_teardown(drawing, outline, step, front)
        case "action":
            return _draw_action(drawing, request, step, front)
        case "sandbox_reprovision":
            front = draw_sandbox(drawing, front, auto=outline.sandbox_auto_approve)
            return front if step.skip_components else draw_all_deploys(drawing, outline, front)
        case "sandbox_deprovision":
            return draw_sandbox(drawing, front, destroy=True)
        case "wait_for_event":
            return drawing.wait(f"runbook.{slug(step.name)}", front, AwaitEvent())
        case _:
            raise InvalidInput(f"runbook step `{step.name}` has an unknown type `{step.type}`")


def _draw_deploy(drawing: Drawing, outline: Outline, step: RunbookStep, front: Front) -> Front:
    names = outline.with_dependents([step.subject]) if step.dependents else (step.subject,)
    if step.plan_only:
        return draw_plans(drawing, outline.pick(names), front)
    return draw_deploys(drawing, outline, outline.pick(names), front)


def _draw_teardown(drawing: Drawing, outline: Outline, step: RunbookStep, front: Front) -> Front:
    names = outline.with_dependents([step.subject]) if step.dependents else (step.subject,)
    return draw_teardowns(drawing, outline, outline.pick(names), front)


def _draw_action(drawing: Drawing, request: Request, step: RunbookStep, front: Front) -> Front:
    intent = RunAction(step.subject, "runbook", "", request.runbook, step.name)
    subject = step.subject or f"{request.runbook}-{step.name}"
    lane = f"action:{slug(subject)}"
    return drawing.job(f"runbook.{slug(step.name)}", front, intent, lanes=[lane], mutating=True)
