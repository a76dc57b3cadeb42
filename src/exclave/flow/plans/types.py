"""The steps of each workflow type: one function per type."""

from collections.abc import Callable, Mapping

from exclave.base.errors import InvalidInput
from exclave.domain.installs import name_part
from exclave.domain.intents import (
    AwaitBuilds,
    AwaitRunner,
    AwaitStack,
    CheckPart,
    RemoveSecrets,
    SyncSecrets,
)
from exclave.domain.lanes import SANDBOX, SECRETS, slug
from exclave.domain.workflows import WorkflowKind
from exclave.flow.plans.deploys import (
    add_action,
    add_all_deploys,
    add_all_teardowns,
    add_deploys,
    add_hooks,
    add_plans,
    add_teardowns,
)
from exclave.flow.plans.drafts import (
    Draft,
    Front,
    GraphBuilder,
    add_plan,
    add_policies,
    add_sandbox,
)
from exclave.flow.plans.outline import Hook, Outline, Request
from exclave.flow.plans.runbooks import add_runbook


def plan_steps(kind: WorkflowKind, outline: Outline, request: Request) -> tuple[Draft, ...]:
    """Return the steps of a workflow."""
    graph = GraphBuilder()
    front = _open(graph, kind, outline, request)
    _TYPES[kind](graph, outline, request, front)
    return tuple(graph.drafts)


def _open(graph: GraphBuilder, kind: WorkflowKind, outline: Outline, request: Request) -> Front:
    """Add the waits for builds, the Stack and a runner, which come first."""
    front: Front = ()
    if outline.builds_pending and kind not in _UNBUILT:
        front = graph.wait("builds", front, AwaitBuilds())
    if kind is WorkflowKind.PROVISION or request.new_stack:
        front = (*front, *graph.wait("stack", (), AwaitStack()))
    return graph.job("runner", front, AwaitRunner())


def _provision(graph: GraphBuilder, outline: Outline, request: Request, front: Front) -> None:
    _add_whole(graph, outline, request, front, "provision")


def _reprovision(graph: GraphBuilder, outline: Outline, request: Request, front: Front) -> None:
    _add_whole(graph, outline, request, front, "reprovision")


def _reprovision_sandbox(
    graph: GraphBuilder, outline: Outline, request: Request, front: Front
) -> None:
    _add_whole(graph, outline, request, front, "reprovision-sandbox")


def _add_whole(
    graph: GraphBuilder, outline: Outline, request: Request, front: Front, hook: str
) -> None:
    """Add the sandbox, secrets and all components, with the hooks around them."""
    if request.plan_only:
        add_plan(graph, SANDBOX, front)
        return
    front = add_hooks(graph, outline, f"pre-{hook}", front)
    if outline.has_sandbox:
        front = add_sandbox(graph, front, auto=outline.sandbox_auto_approve)
    front = _add_policies(graph, outline, front)
    if hook == "provision":
        front = add_hooks(graph, outline, "post-provision-sandbox", front)
    front = _add_secrets(graph, outline, front)
    front = add_all_deploys(graph, outline, front)
    add_hooks(graph, outline, f"post-{hook}", front)


def _add_policies(graph: GraphBuilder, outline: Outline, front: Front) -> Front:
    """Add the policies in the cluster, before anything that they are about."""
    if outline.has_policies:
        return add_policies(graph, front, auto=outline.sandbox_auto_approve)
    if outline.policies_deployed:
        return add_policies(graph, front, destroy=True)
    return front


def _add_secrets(
    graph: GraphBuilder, outline: Outline, front: Front, *, adopt: bool = False
) -> Front:
    front = add_hooks(graph, outline, "pre-secrets-sync", front)
    if outline.has_secrets or outline.copies_secrets:
        front = graph.job("secrets", front, SyncSecrets(adopt), lanes=[SECRETS])
    return add_hooks(graph, outline, "post-secrets-sync", front)


def _add_copies(
    graph: GraphBuilder, outline: Outline, front: Front, *, adopt: bool = False
) -> Front:
    """Add the secrets before a deploy, whose namespaces may have changed, if any are copied."""
    if not outline.copies_secrets:
        return front
    return _add_secrets(graph, outline, front, adopt=adopt)


def _add_secrets_removal(graph: GraphBuilder, outline: Outline, front: Front) -> Front:
    if not outline.copies_secrets:
        return front
    return graph.job("secrets-remove", front, RemoveSecrets(), lanes=[SECRETS])


def _deprovision(graph: GraphBuilder, outline: Outline, request: Request, front: Front) -> None:
    if request.plan_only:
        return
    front = add_hooks(graph, outline, "pre-deprovision", front)
    front = add_all_teardowns(graph, outline, front)
    if outline.policies_deployed:
        front = add_policies(graph, front, destroy=True)
    front = _add_secrets_removal(graph, outline, front)
    if outline.has_sandbox and outline.sandbox_deployed:
        front = add_sandbox(graph, front, destroy=True)
    add_hooks(graph, outline, "post-deprovision", front)


def _deprovision_sandbox(
    graph: GraphBuilder, outline: Outline, request: Request, front: Front
) -> None:
    del request
    on_it = [component.name for component in outline.components if component.deployed]
    if on_it:
        raise InvalidInput(
            f"components still stand on the sandbox: {', '.join(on_it)}",
            hint="Tear them down first: exclave installs teardown INSTALL --all",
        )
    front = add_hooks(graph, outline, "pre-deprovision-sandbox", front)
    front = _add_secrets_removal(graph, outline, front)
    if outline.has_sandbox and outline.sandbox_deployed:
        front = add_sandbox(graph, front, destroy=True)
    add_hooks(graph, outline, "post-deprovision-sandbox", front)


def _deploy(graph: GraphBuilder, outline: Outline, request: Request, front: Front) -> None:
    names = request.components
    chosen = outline.pick(outline.with_dependents(names) if request.dependents else names)
    if request.plan_only:
        add_plans(graph, chosen, front)
        return
    if request.rollback_to is None:
        front = _add_copies(graph, outline, front, adopt=request.adopt)
    add_deploys(graph, outline, chosen, front)


def _deploy_all(graph: GraphBuilder, outline: Outline, request: Request, front: Front) -> None:
    if request.plan_only:
        add_plans(graph, outline.components, front)
    else:
        add_all_deploys(graph, outline, _add_copies(graph, outline, front))


def _teardown(graph: GraphBuilder, outline: Outline, request: Request, front: Front) -> None:
    names = outline.with_dependents(request.components)
    in_the_way = [
        component.name
        for component in outline.pick(names)
        if component.deployed and component.name not in request.components
    ]
    if in_the_way and not request.dependents:
        raise InvalidInput(
            f"still deployed and in need of what you tear down: {', '.join(in_the_way)}",
            hint="Tear these down as well: name them, or use --dependents.",
        )
    add_teardowns(graph, outline, outline.pick(names), front)


def _teardown_all(graph: GraphBuilder, outline: Outline, request: Request, front: Front) -> None:
    del request
    add_all_teardowns(graph, outline, front)


def _sync_secrets(graph: GraphBuilder, outline: Outline, request: Request, front: Front) -> None:
    del request
    _add_secrets(graph, outline, front)


def _update_inputs(graph: GraphBuilder, outline: Outline, request: Request, front: Front) -> None:
    front = add_hooks(graph, outline, "pre-update-inputs", front)
    if request.sandbox and outline.has_sandbox:
        front = add_sandbox(graph, front, auto=outline.sandbox_auto_approve)
        front = _add_policies(graph, outline, front)
        front = _add_secrets(graph, outline, front)
        front = add_all_deploys(graph, outline, front)
    else:
        front = _add_copies(graph, outline, front)
        front = add_deploys(graph, outline, outline.pick(request.components), front)
    add_hooks(graph, outline, "post-update-inputs", front)


def _run_action(graph: GraphBuilder, outline: Outline, request: Request, front: Front) -> None:
    del outline
    add_action(graph, Hook(request.action, request.trigger), front)


def _scan_drift(graph: GraphBuilder, outline: Outline, request: Request, front: Front) -> None:
    if request.sandbox and outline.sandbox_deployed:
        add_plan(graph, SANDBOX, front)
    deployed = [component for component in outline.pick(request.components) if component.deployed]
    add_plans(graph, deployed, front)


def _check_health(graph: GraphBuilder, outline: Outline, request: Request, front: Front) -> None:
    for component in outline.pick(request.components):
        if component.deployed:
            intent = CheckPart(name_part(component.name), request.deployed_by)
            graph.job(f"{slug(component.name)}.health", front, intent)


_UNBUILT = frozenset({WorkflowKind.SYNC_SECRETS, WorkflowKind.HEALTH_CHECK})
_TYPES: Mapping[WorkflowKind, Callable[[GraphBuilder, Outline, Request, Front], None]] = {
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
    WorkflowKind.RUNBOOK_RUN: add_runbook,
    WorkflowKind.DRIFT_SCAN: _scan_drift,
    WorkflowKind.HEALTH_CHECK: _check_health,
}
