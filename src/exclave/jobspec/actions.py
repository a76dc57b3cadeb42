"""The job that runs an action, on its own or as a step of a runbook."""

from collections.abc import Sequence
from typing import Literal

from exclave.appconfig.model.fields import evolve
from exclave.appconfig.model.kinds.actions import Action, ActionStep
from exclave.appconfig.model.kinds.runbooks import RunbookStep
from exclave.appconfig.model.kinds.shared import ACTION_TIMEOUT
from exclave.domain.intents import RunAction
from exclave.domain.jobs import Reason
from exclave.jobspec.errors import NotReady
from exclave.jobspec.facts import ActionFacts
from exclave.jobspec.texts import read_timeout, render_map
from exclave.wire import specs

_PLACEHOLDER = "((exclave:"


def make_action_job(definition: Action, facts: ActionFacts, intent: RunAction) -> specs.ActionSpec:
    """Return the job that runs an action."""
    name, values = definition.name, facts.values
    return specs.ActionSpec(
        steps=[_make_step(name, step, facts) for step in definition.steps],
        env={**_describe_run(facts, intent), **values.env},
        kube_config=_choose_access(definition),
        cluster=facts.cluster,
        timeout_s=read_timeout(definition.timeout or ACTION_TIMEOUT),
    )


def adapt_action(action: Action, step: RunbookStep) -> Action:
    """Return an action as a runbook's step runs it: with its environment, timeout and role."""
    steps = tuple(
        evolve(action_step, env_vars={**action_step.env_vars, **step.env_vars})
        for action_step in action.steps
    )
    return evolve(
        action,
        steps=steps,
        timeout=step.timeout or action.timeout,
        role=step.role or action.role,
    )


def make_action(name: str, step: RunbookStep) -> Action:
    """Return the action for a runbook's step that contains a script of its own."""
    script = ActionStep(
        name=step.name,
        command=step.command,
        inline_contents=step.inline_contents,
        env_vars=step.env_vars,
    )
    return Action(name=name, steps=(script,), timeout=step.timeout, role=step.role)


def _choose_access(definition: Action) -> Literal["none", "optional", "required"]:
    """Return whether commands get a kubeconfig; only an action that names a cluster needs one."""
    if not definition.enable_kube_config:
        return "none"
    return "required" if definition.kubernetes_context else "optional"


def _make_step(action: str, step: ActionStep, facts: ActionFacts) -> specs.ActionStep:
    where = f"action {action}, step {step.name}"
    script = argv = None
    if step.inline_contents:
        script = facts.render(step.inline_contents, f"{where}: inline_contents")
    else:
        argv = _render_command(facts, step.command, f"{where}: command")
    _refuse_secrets(where, argv or [script or ""])
    return specs.ActionStep(
        name=step.name,
        script=script,
        argv=argv,
        artifact=facts.artifacts.get(step.name),
        env=render_map(facts.render, step.env_vars, f"{where}: env_vars"),
    )


def _render_command(facts: ActionFacts, text: str, where: str) -> list[str]:
    words = list(facts.render_command(text, where))
    if not words or not words[0]:
        hint = "Its first word names the program; look at the values that its templates read."
        raise NotReady(Reason.RENDER_FAILED, f"{where} is empty once it is rendered", hint=hint)
    return words


def _refuse_secrets(where: str, texts: Sequence[str]) -> None:
    """Keep secrets out of texts that tools print and machines list."""
    if any(_PLACEHOLDER in text for text in texts):
        raise NotReady(
            Reason.RENDER_FAILED,
            f"{where} has a secret in its text",
            hint="Give it to the step by env_vars and read the variable in the script.",
        )


def _describe_run(facts: ActionFacts, intent: RunAction) -> dict[str, str]:
    """Return the variables that tell a script where and why it runs."""
    kind = facts.values.kind
    env = {
        "NUON_ORG_ID": facts.org_id,
        "NUON_APP_ID": facts.app_id,
        "NUON_INSTALL_ID": facts.install_id,
        "TRIGGER_TYPE": intent.trigger,
        "FLOW_ID": facts.workflow_id,
        "INSTALL_WORKFLOW_ID": facts.workflow_id,
        "FLOW_TYPE": kind,
        "INSTALL_WORKFLOW_TYPE": kind,
    }
    if intent.component:
        name = intent.component
        env |= {"COMPONENT_NAME": name, "COMPONENT_ID": f"{facts.install_id}:{name}"}
    return env
