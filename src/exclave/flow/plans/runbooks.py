"""Steps of runbooks: deploys, teardowns, actions and waits, in their written order."""

from exclave.base.errors import InvalidInput
from exclave.domain.intents import AwaitEvent, RunAction
from exclave.domain.lanes import slug
from exclave.flow.plans.deploys import (
    add_all_deploys,
    add_deploys,
    add_plans,
    add_teardowns,
)
from exclave.flow.plans.drafts import Front, GraphBuilder, add_sandbox
from exclave.flow.plans.outline import Outline, Request, RunbookStep


def add_runbook(graph: GraphBuilder, outline: Outline, request: Request, front: Front) -> None:
    """Add the steps of a runbook one after the other."""
    for step in request.runbook_steps:
        front = _add_step(graph, outline, request, step, front)


def _add_step(
    graph: GraphBuilder, outline: Outline, request: Request, step: RunbookStep, front: Front
) -> Front:
    match step.type:
        case "component_deploy":
            return _add_deploy(graph, outline, step, front)
        case "component_tear_down":
            return _add_teardown(graph, outline, step, front)
        case "action":
            return _add_action(graph, request, step, front)
        case "sandbox_reprovision":
            front = add_sandbox(graph, front, auto=outline.sandbox_auto_approve)
            return front if step.skip_components else add_all_deploys(graph, outline, front)
        case "sandbox_deprovision":
            return add_sandbox(graph, front, destroy=True)
        case "wait_for_event":
            return graph.wait(f"runbook.{slug(step.name)}", front, AwaitEvent())
        case _:
            raise InvalidInput(f"runbook step `{step.name}` has an unknown type `{step.type}`")


def _add_deploy(graph: GraphBuilder, outline: Outline, step: RunbookStep, front: Front) -> Front:
    names = outline.with_dependents([step.subject]) if step.dependents else (step.subject,)
    if step.plan_only:
        return add_plans(graph, outline.pick(names), front)
    return add_deploys(graph, outline, outline.pick(names), front)


def _add_teardown(graph: GraphBuilder, outline: Outline, step: RunbookStep, front: Front) -> Front:
    names = outline.with_dependents([step.subject]) if step.dependents else (step.subject,)
    return add_teardowns(graph, outline, outline.pick(names), front)


def _add_action(graph: GraphBuilder, request: Request, step: RunbookStep, front: Front) -> Front:
    intent = RunAction(step.subject, "runbook", "", request.runbook, step.name)
    subject = step.subject or f"{request.runbook}-{step.name}"
    lane = f"action:{slug(subject)}"
    return graph.job(f"runbook.{slug(step.name)}", front, intent, lanes=[lane], mutating=True)
