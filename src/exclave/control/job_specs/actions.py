"""Gather the facts for jobs that run an action."""

from exclave.appconfig.model.kinds.actions import Action
from exclave.appconfig.model.kinds.runbooks import Runbook, RunbookStep
from exclave.control.install_state.reported_outputs import load_outputs
from exclave.control.job_specs.cluster_access import find_cluster, list_reported_clusters
from exclave.control.job_specs.context import Scope
from exclave.domain.actions import NewActionRun
from exclave.domain.builds import name_action_source
from exclave.domain.intents import RunAction, WorkflowValues
from exclave.jobspec.actions import adapt_action, make_action, make_action_job
from exclave.jobspec.errors import NotReady
from exclave.jobspec.facts import ActionFacts
from exclave.storage import install_parts
from exclave.wire.kubernetes import ClusterRef, KubeconfigCluster
from exclave.wire.specs import ActionSpec


def prepare_run(scope: Scope, intent: RunAction, values: WorkflowValues) -> None:
    """Let the texts of a runbook's step read its inputs and the steps before."""
    if intent.runbook:
        scope.extra = _read_runbook(scope, values)


def make_run(scope: Scope, intent: RunAction, values: WorkflowValues) -> ActionSpec:
    """Return the job that runs an action, or the script that a runbook's step contains."""
    definition = find_action(scope, intent)
    facts = ActionFacts(
        org_id=scope.org,
        app_id=scope.row.app_id,
        install_id=scope.install,
        workflow_id=scope.workflow.id,
        values=values,
        artifacts={
            step.name: scope.find_artifact(name_action_source(definition.name, step.name))
            for step in definition.steps
            if step.repo is not None
        },
        render=scope.render,
        render_command=scope.render_command,
        cluster=_find_cluster(scope, definition),
    )
    return make_action_job(definition, facts, intent)


def _find_cluster(scope: Scope, definition: Action) -> ClusterRef | None:
    """Return the cluster of an action; that it is unknown matters only if the action names it.

    A kubeconfig is known once the Stack has reported it: older runners do not, and they do not
    understand a job with a cluster either.
    """
    if not definition.enable_kube_config:
        return None
    if definition.kubernetes_context:
        return find_cluster(scope, definition.kubernetes_context)
    try:
        cluster = find_cluster(scope)
    except NotReady:
        return None
    if isinstance(cluster, KubeconfigCluster) and cluster.name not in list_reported_clusters(scope):
        return None
    return cluster


def note_run(scope: Scope, intent: RunAction) -> None:
    """Store that an action runs, once its job is known to be good."""
    install_parts.add_run(
        scope.tx,
        scope.org,
        NewActionRun(
            id=scope.deps.ids.new("act"),
            install_id=scope.install,
            action=intent.name,
            trigger=intent.trigger,
            workflow_id=scope.workflow.id,
            step=scope.step,
        ),
    )


def find_action(scope: Scope, intent: RunAction) -> Action:
    """Return the action of a step, or the one that a runbook's step defines itself."""
    if not intent.runbook:
        return scope.find_definition(Action, intent.action)
    step = _find_runbook_step(scope, intent)
    if not intent.action:
        return make_action(intent.name, step)
    return adapt_action(scope.find_definition(Action, intent.action), step)


def _find_runbook_step(scope: Scope, intent: RunAction) -> RunbookStep:
    runbook = scope.find_definition(Runbook, intent.runbook)
    return next(step for step in runbook.steps if step.name == intent.runbook_step)


def _read_runbook(scope: Scope, values: WorkflowValues) -> dict[str, object]:
    """Return the runbook's inputs, and the outputs of its finished steps."""
    key = (scope.org, scope.workflow.id)
    done = [step for step in scope.workflow.steps if step.name.startswith("runbook.")]
    outputs = load_outputs(scope.tx, key, [step.index for step in done]) if done else {}
    return {
        "runbook_inputs": dict(values.runbook_inputs),
        "runbook_outputs": {name.removeprefix("runbook."): out for name, out in outputs.items()},
    }
