"""Checks of `sandbox.toml`."""

from exclave.appconfig.checks.common import check_one_of, check_role_rules
from exclave.appconfig.diagnostics.codes import Code
from exclave.appconfig.diagnostics.report import Report
from exclave.appconfig.model.app import App
from exclave.appconfig.model.kinds.sandbox import Sandbox


def check(app: App, report: Report) -> None:
    """Check the sandbox."""
    for entry in app.entries_of(Sandbox):
        value = entry.value
        if not isinstance(value, Sandbox):
            continue
        check_one_of(report, entry.place, value, ("public_repo", "connected_repo"))
        check_role_rules(app, report, entry)
        if value.type == "pulumi" and not value.runtime:
            hint = 'Write runtime = "go", "nodejs" or "python".'
            report.error(Code.MISSING_KEY, entry.place, "`runtime` is missing for pulumi", hint)
        elif value.type == "terraform" and not value.terraform_version and app.cloud != "local":
            hint = 'Pin it: terraform_version = "1.11.3".'
            report.warn(Code.WANTED_KEY, entry.place, "`terraform_version` is missing", hint)
