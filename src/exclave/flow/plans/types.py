"""One function per type of workflow: from outline and wish to steps, in the order users know."""

from collections.abc import Callable, Mapping

from exclave.base.errors import InvalidInput
from exclave.flow.plans.deploys import (
    draw_action,
    draw_all_deploys,
    draw_all_teardowns,
    draw_deploys,
    draw_hooks,
    draw_plans,
    draw_teardowns,
)
from exclave.flow.plans.drafts import Draft, Drawing, Front, draw_plan, draw_sandbox
from exclave.flow.plans.intents import AwaitBuilds, AwaitRunner, AwaitStack, SyncSecrets
from exclave.flow.plans.kinds import WorkflowKind
from exclave.flow.plans.outline import Hook, Outline, Request
from exclave.flow.plans.runbooks import draw_runbook


def plan_steps(kind: WorkflowKind, outline: Outline, request: Request) -> tuple[Draft, ...]:
    """Draw the steps of a workflow."""
    drawing = Drawing()
    front = _open(drawing, kind, outline, request)
    _TYPES[kind](drawing, outline, request, front)
    return tuple(drawing.drafts)


def _open(drawing: Drawing, kind: WorkflowKind, outline: Outline, request: Request) -> Front:
    """Wait for what must be there before anything else: builds, the Stack, a runner."""
    front: Front = ()
    if outline.builds_pending and kind not in _UNBUILT:
        front = drawing.wait("builds", front, AwaitBuilds())
    if kind is WorkflowKind.PROVISION or request.new_stack:
        front = (*front, *drawing.wait("stack", (), AwaitStack()))
    return drawing.job("runner", front, AwaitRunner())


def _provision(drawing: Drawing, outline: Outline, request: Request, front: Front) -> None:
    _draw_whole(drawing, outline, request, front, "provision")


def _reprovision(drawing: Drawing, outline: Outline, request: Request, front: Front) -> None:
    _draw_whole(drawing, outline, request, front, "reprovision")


def _reprovision_sandbox(
    drawing: Drawing, outline: Outline, request: Request, front: Front
) -> None:
    _draw_whole(drawing, outline, request, front, "reprovision-sandbox")


def _draw_whole(
    drawing: Drawing, outline: Outline, request: Request, front: Front, hook: str
) -> None:
    """Hooks, the sandbox, secrets, everything on it, hooks."""
    if request.plan_only:
        draw_plan(drawing, "sandbox", front)
        return
    front = draw_hooks(drawing, outline, f"pre-{hook}", front)
    if outline.has_sandbox:
        front = draw_sandbox(drawing, front, auto=outline.sandbox_auto_approve)
    if hook == "provision":
        front = draw_hooks(drawing, outline, "post-provision-sandbox", front)
    front = _draw_secrets(drawing, outline, front)
    front = draw_all_deploys(drawing, outline, front)
    draw_hooks(drawing, outline, f"post-{hook}", front)


def _draw_secrets(drawing: Drawing, outline: Outline, front: Front) -> Front:
    front = draw_hooks(drawing, outline, "pre-secrets-sync", front)
    if outline.has_secrets:
        front = drawing.job("secrets", front, SyncSecrets())
    return draw_hooks(drawing, outline, "post-secrets-sync", front)


def _deprovision(drawing: Drawing, outline: Outline, request: Request, front: Front) -> None:
    if request.plan_only:
        return
    front = draw_hooks(drawing, outline, "pre-deprovision", front)
    front = draw_all_teardowns(drawing, outline, front)
    if outline.has_sandbox and outline.sandbox_deployed:
        front = draw_sandbox(drawing, front, destroy=True)
    draw_hooks(drawing, outline, "post-deprovision", front)


def _deprovision_sandbox(
    drawing: Drawing, outline: Outline, request: Request, front: Front
) -> None:
    del request
    on_it = [each.name for each in outline.components if each.deployed]
    if on_it:
        raise InvalidInput(
            f"components still stand on the sandbox: {', '.join(on_it)}",
            hint="Tear them down first: exclave installs teardown INSTALL --all",
        )
    front = draw_hooks(drawing, outline, "pre-deprovision-sandbox", front)
    if outline.has_sandbox and outline.sandbox_deployed:
        front = draw_sandbox(drawing, front, destroy=True)
    draw_hooks(drawing, outline, "post-deprovision-sandbox", front)


def _deploy(drawing: Drawing, outline: Outline, request: Request, front: Front) -> None:
    names = request.components
    chosen = outline.pick(outline.with_dependents(names) if request.dependents else names)
    if request.plan_only:
        draw_plans(drawing, chosen, front)
    else:
        draw_deploys(drawing, outline, chosen, front)


def _deploy_all(drawing: Drawing, outline: Outline, request: Request, front: Front) -> None:
    if request.plan_only:
        draw_plans(drawing, outline.components, front)
    else:
        draw_all_deploys(drawing, outline, front)


def _teardown(drawing: Drawing, outline: Outline, request: Request, front: Front) -> None:
    names = outline.with_dependents(request.components)
    in_the_way = [
        each.name
        for each in outline.pick(names)
        if each.deployed and each.name not in request.components
    ]
    if in_the_way and not request.dependents:
        raise InvalidInput(
            f"still deployed and in need of what you tear down: {', '.join(in_the_way)}",
            hint="Tear these down as well: name them, or use --dependents.",
        )
    draw_teardowns(drawing, outline, outline.pick(names), front)


def _teardown_all(drawing: Drawing, outline: Outline, request: Request, front: Front) -> None:
    del request
    draw_all_teardowns(drawing, outline, front)


def _sync_secrets(drawing: Drawing, outline: Outline, request: Request, front: Front) -> None:
    del request
    _draw_secrets(drawing, outline, front)


def _update_inputs(drawing: Drawing, outline: Outline, request: Request, front: Front) -> None:
    front = draw_hooks(drawing, outline, "pre-update-inputs", front)
    if request.sandbox and outline.has_sandbox:
        front = draw_sandbox(drawing, front, auto=outline.sandbox_auto_approve)
        front = _draw_secrets(drawing, outline, front)
        front = draw_all_deploys(drawing, outline, front)
    else:
        front = draw_deploys(drawing, outline, outline.pick(request.components), front)
    draw_hooks(drawing, outline, "post-update-inputs", front)


def _run_action(drawing: Drawing, outline: Outline, request: Request, front: Front) -> None:
    del outline
    draw_action(drawing, Hook(request.action, request.trigger), front)


def _scan_drift(drawing: Drawing, outline: Outline, request: Request, front: Front) -> None:
    if request.sandbox and outline.sandbox_deployed:
        draw_plan(drawing, "sandbox", front)
    deployed = [each for each in outline.pick(request.components) if each.deployed]
    draw_plans(drawing, deployed, front)


_UNBUILT = frozenset({WorkflowKind.SYNC_SECRETS})
_TYPES: Mapping[WorkflowKind, Callable[[Drawing, Outline, Request, Front], None]] = {
    WorkflowKind.PROVISION: _provision,
    WorkflowKind.REPROVISION: _reprovision,
    WorkflowKind.REPROVISION_SANDBOX: _reprovision_sandbox,
    WorkflowKind.DEPROVISION_SANDBOX: _deprovision_sandbox,
    WorkflowKind.DEPROVISION: _deprovision,
    WorkflowKind.DEPLOY: _deploy,
    WorkflowKind.DEPLOY_ALL: _deploy_all,
    WorkflowKind.TEARDOWN: _teardown,
    WorkflowKind.TEARDOWN_ALL: _teardown_all,
    WorkflowKind.SYNC_SECRETS: _sync_secrets,
    WorkflowKind.INPUT_UPDATE: _update_inputs,
    WorkflowKind.ACTION_RUN: _run_action,
    WorkflowKind.RUNBOOK_RUN: draw_runbook,
    WorkflowKind.DRIFT_SCAN: _scan_drift,
}
