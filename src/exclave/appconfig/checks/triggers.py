"""Checks of rules for events from outside."""

from exclave.appconfig.checks.common import check_exists, names_of
from exclave.appconfig.diagnostics.codes import Code
from exclave.appconfig.diagnostics.report import Place, Report
from exclave.appconfig.model.app import App
from exclave.appconfig.model.kinds.runbooks import Runbook
from exclave.appconfig.model.kinds.triggers import MAX_FILTERS, EventRule, Filter, Target

_VALUELESS = ("exists", "not_exists")


def check(app: App, report: Report) -> None:
    """Check the rules, and the filters of runbook steps."""
    for entry in app.entries_of(EventRule):
        if isinstance(entry.value, EventRule):
            _check_filters(report, entry.place, entry.value.filters)
            if entry.value.target is not None:
                _check_target(app, report, entry.place.child("target"), entry.value.target)
    for entry in app.entries_of(Runbook):
        if isinstance(entry.value, Runbook):
            for index, step in enumerate(entry.value.steps):
                _check_filters(report, entry.place.child("steps", index), step.filters)


def _check_filters(report: Report, place: Place, filters: tuple[Filter, ...]) -> None:
    if len(filters) > MAX_FILTERS:
        message = f"{len(filters)} filters are more than {MAX_FILTERS}"
        report.error(Code.CONFLICT, place.child("filters"), message, "Split the rule.")
    for index, condition in enumerate(filters):
        at = place.child("filters", index)
        if condition.op and condition.op not in _VALUELESS and condition.value is None:
            message = f"`value` is missing, which {condition.op} needs"
            report.error(Code.MISSING_KEY, at, message)
        elif condition.op in _VALUELESS and condition.value is not None:
            message = f"`value` has no effect with {condition.op}"
            report.warn(Code.NEEDLESS_KEY, at.child("value"), message)


def _check_target(app: App, report: Report, place: Place, target: Target) -> None:
    wanted = {"app_branch_run": "app_branch", "runbook": "runbook"}.get(target.type, "")
    if wanted and not getattr(target, wanted):
        message = f"`{wanted}` is missing, which a target of type {target.type} needs"
        report.error(Code.MISSING_KEY, place, message)
    # Branches may also be created on the platform, so an unknown one is only a warning.
    at = place.child("app_branch")
    branches = names_of(app.branches)
    check_exists(report, Code.UNKNOWN_BRANCH, at, target.app_branch, branches, soft=True)
    runbooks = {runbook.name: runbook for runbook in app.runbooks}
    check_exists(report, Code.UNKNOWN_RUNBOOK, place.child("runbook"), target.runbook, runbooks)
    if target.runbook in runbooks:
        known = names_of(runbooks[target.runbook].input)
        for name in target.inputs:
            at = place.child("inputs", name)
            check_exists(report, Code.UNKNOWN_INPUT, at, name, known)
