"""Runs every check of an app."""

from collections.abc import Callable, Sequence

from exclave.appconfig.checks import (
    actions,
    branches,
    components,
    contexts,
    counts,
    inputs,
    installs,
    names,
    paths,
    permissions,
    policies,
    role_rules,
    runbooks,
    sandbox,
    secrets,
    sizes,
    stack,
    triggers,
)
from exclave.appconfig.diagnostics.report import Report
from exclave.appconfig.model.app import App
from exclave.appconfig.uses import Found

CHECKS: tuple[Callable[[App, Report], None], ...] = (
    names.check,
    counts.check,
    sandbox.check,
    stack.check,
    inputs.check,
    secrets.check,
    permissions.check,
    policies.check,
    role_rules.check,
    contexts.check,
    components.check,
    actions.check,
    runbooks.check,
    branches.check,
    triggers.check,
    installs.check,
    sizes.check,
)


def check_app(app: App, uses: Sequence[Found], report: Report) -> None:
    """Run all checks."""
    for check in CHECKS:
        check(app, report)
    paths.check(app, uses, report)
