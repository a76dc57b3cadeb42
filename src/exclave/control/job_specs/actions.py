"""Jobs that run an action, or find out which secrets exist."""

from collections.abc import Mapping
from typing import Any

from exclave.control.install_state.reported_outputs import load_outputs
from exclave.control.job_specs.context import NotReady, Scope, read_timeout
from exclave.domain.actions import NewActionRun
from exclave.domain.jobs import Reason
from exclave.flow.plans.intents import RunAction, WorkflowValues
from exclave.storage import configs, install_parts
from exclave.wire.specs import ActionSpec, ActionStep, SecretsSpec, WantedSecret

_PLACEHOLDER = "((exclave:"


def make_action(scope: Scope, intent: RunAction, values: WorkflowValues) -> ActionSpec:
    """Return the job that runs an action, or the script that a runbook's step contains."""
    if intent.runbook:
        scope.extra = _read_runbook(scope, values)
    value = find_action(scope, intent)
    name = str(value["name"])
    return ActionSpec(
        steps=[_make_step(scope, name, each) for each in value["steps"]],
        env={**_describe_run(scope, intent, values.kind), **values.env},
        role=values.role or scope.render(str(value.get("role", "")), f"action {name}: role"),
        timeout_s=read_timeout(str(value.get("timeout") or "5m")),
    )


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


def find_action(scope: Scope, intent: RunAction) -> Mapping[str, Any]:
    """Return the action of a step, or the one that a runbook's step defines itself."""
    if intent.action:
        value = dict(scope.find_part("action", intent.action))
        if intent.runbook:
            own = _find_runbook_step(scope, intent)
            steps = [
                {**each, "env_vars": {**each.get("env_vars", {}), **own.get("env_vars", {})}}
                for each in value["steps"]
            ]
            value |= {"steps": steps, "timeout": own.get("timeout") or value.get("timeout")}
        return value
    own = _find_runbook_step(scope, intent)
    step = {"name": own["name"], **{k: own[k] for k in _STEP_KEYS if k in own}}
    return {
        "name": intent.name,
        "steps": [step],
        "timeout": own.get("timeout", ""),
        "role": own.get("role", ""),
    }


_STEP_KEYS = ("command", "inline_contents", "env_vars")


def _find_runbook_step(scope: Scope, intent: RunAction) -> Mapping[str, Any]:
    runbook = scope.find_part("runbook", intent.runbook)
    return next(each for each in runbook["steps"] if each["name"] == intent.runbook_step)


def _read_runbook(scope: Scope, values: WorkflowValues) -> dict[str, object]:
    """Return the runbook's inputs, and the outputs of its finished steps."""
    key = (scope.org, scope.workflow.id)
    done = [step for step in scope.workflow.steps if step.name.startswith("runbook.")]
    outputs = load_outputs(scope.tx, key, [step.index for step in done]) if done else {}
    return {
        "runbook_inputs": dict(values.runbook_inputs),
        "runbook_outputs": {name.removeprefix("runbook."): out for name, out in outputs.items()},
    }


def _make_step(scope: Scope, action: str, value: Mapping[str, Any]) -> ActionStep:
    name = str(value["name"])
    where = f"action {action}, step {name}"
    has_source = value.get("public_repo") or value.get("connected_repo")
    script = command = None
    if value.get("inline_contents"):
        script = scope.render(str(value["inline_contents"]), f"{where}: inline_contents")
    else:
        command = _render_command(scope, str(value.get("command", "")), f"{where}: command")
    _refuse_secrets(where, script, command)
    return ActionStep(
        name=name,
        script=script,
        argv=command,
        artifact=scope.find_artifact(f"action:{action}:{name}") if has_source else None,
        env=scope.render_map(value.get("env_vars", {}), f"{where}: env_vars"),
    )


def _render_command(scope: Scope, text: str, where: str) -> list[str]:
    words = scope.render_command(text, where)
    if not words or not words[0]:
        hint = "Its first word names the program; look at the values that its templates read."
        raise NotReady(Reason.RENDER_FAILED, f"{where} is empty once it is rendered", hint=hint)
    return words


def _refuse_secrets(where: str, script: str | None, command: list[str] | None) -> None:
    """Keep secrets out of texts that tools print and machines list."""
    if _PLACEHOLDER in (script or "") or any(_PLACEHOLDER in part for part in command or []):
        raise NotReady(
            Reason.RENDER_FAILED,
            f"{where} has a secret in its text",
            hint="Give it to the step by env_vars and read the variable in the script.",
        )


def _describe_run(scope: Scope, intent: RunAction, kind: str) -> dict[str, str]:
    """Return the variables that tell a script where and why it runs."""
    env = {
        "NUON_ORG_ID": scope.org,
        "NUON_APP_ID": scope.row.app_id,
        "NUON_INSTALL_ID": scope.install,
        "TRIGGER_TYPE": intent.trigger,
        "FLOW_ID": scope.workflow.id,
        "INSTALL_WORKFLOW_ID": scope.workflow.id,
        "FLOW_TYPE": kind,
        "INSTALL_WORKFLOW_TYPE": kind,
    }
    if intent.component:
        name = intent.component
        env |= {"COMPONENT_NAME": name, "COMPONENT_ID": f"{scope.install}:{name}"}
    return env


def make_secrets(scope: Scope) -> SecretsSpec:
    """Return the job that finds out which secrets the customer has provided."""
    rows = configs.list_parts(scope.tx, scope.org, scope.config_id, "secret")
    return SecretsSpec(
        secrets=[
            WantedSecret(
                name=scope.render(str(row.value["name"]), "secret"),
                required=bool(row.value.get("required")),
                auto_generate=bool(row.value.get("auto_generate")),
                default=str(row.value.get("default") or ""),
            )
            for row in rows
        ]
    )
