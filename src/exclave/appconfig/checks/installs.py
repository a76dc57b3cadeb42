"""Checks of install configs against their app."""

from exclave.appconfig.checks.common import check_exists, check_one_of, names_of
from exclave.appconfig.checks.inputs import find_flaw, report_flaw
from exclave.appconfig.checks.stack import check_nested
from exclave.appconfig.diagnostics.codes import Code
from exclave.appconfig.diagnostics.report import Place, Report, list_words
from exclave.appconfig.model.app import App, Entry
from exclave.appconfig.model.kinds.installs import Install, InstallsPointer

_MOST_TABLES = 64
_ACCOUNTS = {"aws_account": "aws", "azure_account": "azure", "gcp_account": "gcp"}


def check(app: App, report: Report) -> None:
    """Check all install configs."""
    for entry in app.entries_of(InstallsPointer):
        check_one_of(report, entry.place, entry.value, ("public_repo", "connected_repo"))
    for entry in app.entries_of(Install):
        install = entry.value
        if not isinstance(install, Install):
            continue
        _check_account(app, report, entry.place, install)
        _check_inputs(app, report, entry.place, install)
        _check_components(app, report, entry.place, install)
        _check_branch(app, report, entry.place, install)
        if install.stack_overrides is not None:
            at = Entry(entry.section, install, entry.place.child("stack_overrides"))
            check_nested(report, at, install.stack_overrides.custom_nested_stacks)


def _check_account(app: App, report: Report, place: Place, install: Install) -> None:
    check_one_of(report, place, install, tuple(_ACCOUNTS), needed=False)
    for key, cloud in _ACCOUNTS.items():
        if getattr(install, key) is not None and app.cloud not in {"", "local", cloud}:
            message = f"`{key}` is for {cloud}, and the runner for {app.cloud}"
            hint = f"Write [{app.cloud}_account]."
            report.error(Code.CLOUD_MISMATCH, place.child(key), message, hint)


def _check_inputs(app: App, report: Report, place: Place, install: Install) -> None:
    known = {declared.name: declared for declared in app.inputs}
    for name, value in install.inputs.items():
        at = _locate_input(place.child("inputs"), name)
        check_exists(report, Code.UNKNOWN_INPUT, at, name, known, soft=True)
        flaw = find_flaw(known[name].type, value) if name in known and value else ""
        if flaw:
            message = f"the value of `{name}` is {flaw}"
            report_flaw(report, at, known[name].type, message)
    missing = [
        declared.name
        for declared in app.inputs
        if declared.required and not declared.sensitive and not install.inputs.get(declared.name)
    ]
    if missing:
        message = f"the required inputs {list_words(missing)} have no value"
        report.warn(Code.WANTED_KEY, place.child("inputs"), message, "Write them into [inputs].")


def _locate_input(place: Place, name: str) -> Place:
    """Return the place of an input in the last table that sets it; later tables win."""
    tables = [place, *(place.child(index) for index in range(_MOST_TABLES))]
    return next((table.child(name) for table in reversed(tables) if table.has(name)), place)


def _check_components(app: App, report: Report, place: Place, install: Install) -> None:
    known = {component.name: component for component in app.components}
    for name in install.component_toggles:
        at = place.child("component_toggles", name)
        check_exists(report, Code.UNKNOWN_COMPONENT, at, name, known)
        if name in known and not known[name].toggleable:
            message = f"`{name}` is not toggleable, so this has no effect"
            hint = "Write toggleable = true in the component."
            report.warn(Code.NEEDLESS_KEY, at, message, hint)
    for name in install.components:
        at = place.child("components", name)
        check_exists(report, Code.UNKNOWN_COMPONENT, at, name, known)


def _check_branch(app: App, report: Report, place: Place, install: Install) -> None:
    if install.app_branch_group and not install.app_branch:
        at = place.child("app_branch_group")
        report.error(Code.MISSING_KEY, at, "`app_branch_group` needs `app_branch`")
    branches = {branch.name: branch for branch in app.branches}
    if install.app_branch and branches:
        at = place.child("app_branch")
        check_exists(report, Code.UNKNOWN_BRANCH, at, install.app_branch, branches, soft=True)
    branch = branches.get(install.app_branch)
    if branch is not None and install.app_branch_group:
        at, groups = place.child("app_branch_group"), names_of(branch.install_groups)
        name = install.app_branch_group
        check_exists(report, Code.UNKNOWN_BRANCH, at, name, groups, soft=True)
