"""Checks of runbooks."""

from collections.abc import Mapping

from exclave.appconfig.checks.actions import check_command, check_script
from exclave.appconfig.checks.common import check_exists, check_role, check_unique, names_of
from exclave.appconfig.diagnostics.codes import Code
from exclave.appconfig.diagnostics.report import Place, Report
from exclave.appconfig.model.app import App, Entry
from exclave.appconfig.model.kinds.runbooks import Runbook, RunbookStep
from exclave.appconfig.templates import ROOT, RUNBOOK_ROOTS

_COMPONENT = ("component_deploy", "component_tear_down")
_FOR: Mapping[str, tuple[str, ...]] = {
    "component_name": _COMPONENT,
    "deploy_dependents": _COMPONENT,
    "tear_down_dependents": _COMPONENT,
    "plan_only": ("component_deploy", "sandbox_reprovision"),
    "skip_component_deploys": ("sandbox_reprovision",),
    "action_name": ("action",),
    "command": ("action",),
    "inline_contents": ("action",),
    "env_vars": ("action",),
    "timeout": ("action",),
    "role": ("action",),
    "trigger": ("wait_for_event",),
    "event_types": ("wait_for_event",),
    "filters": ("wait_for_event",),
    "match_all": ("wait_for_event",),
}


def check(app: App, report: Report) -> None:
    """Check all runbooks."""
    components = names_of(app.components)
    for entry in app.entries_of(Runbook):
        runbook = entry.value
        if not isinstance(runbook, Runbook):
            continue
        check_unique(report, entry.place.child("steps"), runbook.steps, soft=True)
        check_unique(report, entry.place.child("input"), runbook.input)
        for index, name in enumerate(runbook.dependencies):
            at = entry.place.child("dependencies", index)
            check_exists(report, Code.UNKNOWN_COMPONENT, at, name, components, soft=True)
        for index, step in enumerate(runbook.steps):
            _check_step(app, report, entry, index, step)


def _check_step(app: App, report: Report, entry: Entry, index: int, step: RunbookStep) -> None:
    place = entry.place.child("steps", index)
    _check_keys(report, place, step)
    at = place.child("component_name")
    components, actions = names_of(app.components), names_of(app.actions)
    check_exists(report, Code.UNKNOWN_COMPONENT, at, step.component_name, components)
    at = place.child("action_name")
    check_exists(report, Code.UNKNOWN_ACTION, at, step.action_name, actions)
    check_role(app, report, place.child("role"), step.role)
    scripts = [text for text in entry.texts if text.at == ("steps", index, "inline_contents")]
    check_script(report, scripts[0] if scripts else None)
    check_command(report, place.child("command"), step.command, (ROOT, *RUNBOOK_ROOTS))


def _check_keys(report: Report, place: Place, step: RunbookStep) -> None:
    for key, types in _FOR.items():
        if step.type and step.type not in types and getattr(step, key):
            message = f"`{key}` has no effect on a step of type {step.type}"
            report.warn(Code.NEEDLESS_KEY, place.child(key), message, "Remove the key.")
    if step.type in _COMPONENT and not step.component_name:
        message = f"`component_name` is missing, which {step.type} needs"
        report.error(Code.MISSING_KEY, place, message, "Name a component of the app.")
    if step.type == "wait_for_event" and not step.trigger:
        message = "`trigger` is missing, which wait_for_event needs"
        report.error(Code.MISSING_KEY, place, message, "Name the source of events.")
    if step.type != "action":
        return
    keys = ("action_name", "command", "inline_contents")
    ways = [key for key in keys if getattr(step, key)] or [key for key in keys if place.has(key)]
    if not ways:
        hint = "Write `action_name`, or a script of its own in `inline_contents` or `command`."
        report.error(Code.MISSING_KEY, place, f"the step `{step.name}` does nothing", hint)
    elif step.action_name and len(ways) > 1:
        message = f"`action_name` and `{ways[1]}` exclude each other"
        report.error(Code.ONE_OF, place.child(ways[1]), message, "Keep one of them.")
