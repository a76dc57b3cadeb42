"""Checks of actions: their triggers and steps."""

from exclave.appconfig.checks.common import (
    check_exists,
    check_one_of,
    check_role,
    check_unique,
    names_of,
)
from exclave.appconfig.commands import BadCommand, mark_command
from exclave.appconfig.diagnostics.codes import Code
from exclave.appconfig.diagnostics.report import Place, Report
from exclave.appconfig.model.app import App, Entry, Text
from exclave.appconfig.model.kinds.actions import COMPONENT_TRIGGERS, Action, ActionTrigger
from exclave.appconfig.templates import ROOT, Fault, find_uses


def check(app: App, report: Report) -> None:
    """Check all actions."""
    components, contexts = names_of(app.components), names_of(app.kubernetes_contexts)
    for entry in app.entries_of(Action):
        action, place = entry.value, entry.place
        if not isinstance(action, Action):
            continue
        _check_triggers(report, entry, action, components)
        _check_steps(report, entry, action)
        for key in ("role", "break_glass_role"):
            check_role(app, report, place.child(key), getattr(action, key))
        at = place.child("kubernetes_context")
        check_exists(report, Code.UNKNOWN_CONTEXT, at, action.kubernetes_context, contexts)
        for index, name in enumerate(action.dependencies):
            at = place.child("dependencies", index)
            check_exists(report, Code.UNKNOWN_COMPONENT, at, name, components, soft=True)


def _check_triggers(report: Report, entry: Entry, action: Action, components: set[str]) -> None:
    crons = 0
    for index, trigger in enumerate(action.triggers):
        place = entry.place.child("triggers", index)
        crons += trigger.type == "cron"
        if trigger.type == "cron" and crons > 1:
            message = "an action has at most one cron trigger"
            hint = "Write one schedule that covers both, or a second action."
            report.error(Code.CONFLICT, place, message, hint)
        _check_trigger(report, place, trigger)
        at = place.child("component_name")
        check_exists(report, Code.UNKNOWN_COMPONENT, at, trigger.component_name, components)


def _check_trigger(report: Report, place: Place, trigger: ActionTrigger) -> None:
    if trigger.type == "cron" and not trigger.cron_schedule:
        message = "a cron trigger without `cron_schedule` never fires"
        report.warn(Code.SILENT_TRIGGER, place, message, 'Example: cron_schedule = "0 6 * * *"')
    if trigger.type and trigger.type != "cron" and trigger.cron_schedule:
        message = f"`cron_schedule` has no effect on a trigger of type {trigger.type}"
        report.warn(Code.NEEDLESS_KEY, place.child("cron_schedule"), message)
    if trigger.type in COMPONENT_TRIGGERS and not trigger.component_name:
        message = f"`component_name` is missing, which {trigger.type} needs"
        soft = trigger.type.endswith(("enable-component", "disable-component"))
        tell, code = (report.warn, Code.WANTED_KEY) if soft else (report.error, Code.MISSING_KEY)
        tell(code, place, message, "Name the component that sets it off.")
    if trigger.type and trigger.type not in COMPONENT_TRIGGERS and trigger.component_name:
        message = f"a trigger of type {trigger.type} takes no `component_name`"
        hint = "Remove the key, or use a trigger such as post-deploy-component."
        report.error(Code.CONFLICT, place.child("component_name"), message, hint)


def _check_steps(report: Report, entry: Entry, action: Action) -> None:
    check_unique(report, entry.place.child("steps"), action.steps, soft=True)
    texts = {text.at: text for text in entry.texts}
    for index, step in enumerate(action.steps):
        place = entry.place.child("steps", index)
        check_one_of(report, place, step, ("public_repo", "connected_repo"), needed=False)
        script = texts.get(("steps", index, "inline_contents"))
        check_script(report, script)
        check_command(report, place.child("command"), step.command)
        if not (step.command or step.inline_contents or place.has("inline_contents")):
            hint = "Write `inline_contents` with a script, or `command`."
            report.error(Code.MISSING_KEY, place, f"the step `{step.name}` does nothing", hint)
        elif step.command and step.inline_contents:
            message = "`command` has no effect beside `inline_contents`"
            report.warn(Code.NEEDLESS_KEY, place.child("command"), message, "Remove one of them.")


def check_command(
    report: Report, place: Place, command: str, roots: tuple[str, ...] = (ROOT,)
) -> None:
    """Report a command that cannot be split into words; templates are checked elsewhere."""
    if not command or isinstance(find_uses(command, roots), Fault):
        return
    try:
        mark_command(command, "", roots)
    except BadCommand as bad:
        report.error(Code.BAD_FORMAT, place, f"`command`: {bad.message}", bad.hint)


def check_script(report: Report, script: Text | None) -> None:
    """Report a script without an interpreter line."""
    if script is None or script.remote or not script.content.strip():
        return
    start = script.content.lstrip("\ufeff")
    if not start.startswith(("#!", "{{")):
        hint = "Start it with `#!/bin/sh` or `#!/usr/bin/env bash`."
        report.warn(Code.NO_SHEBANG, script.start, "the script has no `#!` line", hint)
