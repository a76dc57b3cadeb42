"""Checks of branches."""

from exclave.appconfig.checks.common import check_exists, check_one_of, check_unique, names_of
from exclave.appconfig.diagnostics.codes import Code
from exclave.appconfig.diagnostics.report import Report
from exclave.appconfig.model.app import App, Entry
from exclave.appconfig.model.kinds.branches import Branch


def check(app: App, report: Report) -> None:
    """Check all branches."""
    runbooks = names_of(app.runbooks)
    for entry in app.entries_of(Branch):
        branch = entry.value
        if not isinstance(branch, Branch):
            continue
        check_one_of(report, entry.place, branch, ("public_repo", "connected_repo"))
        check_unique(report, entry.place.child("install_groups"), branch.install_groups)
        _check_groups(report, entry, branch)
        for index, name in enumerate(branch.post_deploy_runbooks):
            at = entry.place.child("post_deploy_runbooks", index)
            check_exists(report, Code.UNKNOWN_RUNBOOK, at, name, runbooks)
        _check_modes(report, entry, branch)


def _check_groups(report: Report, entry: Entry, branch: Branch) -> None:
    defaults = [group for group in branch.install_groups if group.default]
    if branch.install_groups and len(defaults) != 1:
        message = f"{len(defaults)} install groups are the default, and it must be one"
        hint = "Write default = true on the group that takes all other installs."
        place = entry.place.child("install_groups")
        report.warn(Code.NO_DEFAULT_GROUP, place, message, hint)
    seen: list[dict[str, str]] = []
    for index, group in enumerate(branch.install_groups):
        selector = dict(group.label_selector)
        if selector and selector in seen:
            place = entry.place.child("install_groups", index, "label_selector")
            message = f"the group `{group.name}` selects the same installs as another"
            report.error(Code.CONFLICT, place, message, "Give each its own labels.")
        seen.append(selector)


def _check_modes(report: Report, entry: Entry, branch: Branch) -> None:
    run, preview = branch.run, branch.preview
    if run is not None:
        for mode, key in (("on_tag", "tag_prefix"), ("on_github_label", "github_label")):
            if getattr(run, key) and run.mode != mode:
                place = entry.place.child("run", key)
                report.warn(Code.NEEDLESS_KEY, place, f'`{key}` needs mode = "{mode}"')
        if run.mode == "on_github_label" and not run.github_label:
            place = entry.place.child("run")
            report.error(Code.MISSING_KEY, place, "`github_label` is missing")
    if preview is not None:
        keys = ("install_id", "install_name", "label_selector")
        check_one_of(report, entry.place.child("preview"), preview, keys, needed=False)
