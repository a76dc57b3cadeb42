"""Checks of the role matrix in `operation_roles.toml`."""

from exclave.appconfig.checks.common import check_exists, check_role, names_of
from exclave.appconfig.diagnostics.codes import Code
from exclave.appconfig.diagnostics.report import Place, Report
from exclave.appconfig.model.app import App
from exclave.appconfig.model.kinds.operation_roles import RoleRule

_SANDBOX = "nuon::sandbox"
_COMPONENT = "nuon::component:"
_ACTION = "nuon::action:"


def check(app: App, report: Report) -> None:
    """Check each cell of the matrix."""
    seen: set[tuple[str, str]] = set()
    for entry in app.entries_of(RoleRule):
        rule = entry.value
        if not isinstance(rule, RoleRule):
            continue
        _check_principal(app, report, entry.place.child("principal"), rule.principal)
        check_role(app, report, entry.place.child("role"), rule.role, soft=False)
        cell = (rule.principal, rule.operation)
        if cell in seen and all(cell):
            message = f"`{rule.operation}` of `{rule.principal}` has two roles"
            report.error(Code.CONFLICT, entry.place, message, "Keep one of them.")
        seen.add(cell)


def _check_principal(app: App, report: Report, place: Place, principal: str) -> None:
    if not principal or principal in {_SANDBOX, f"{_COMPONENT}*", f"{_ACTION}*"}:
        return
    if principal.startswith(_COMPONENT):
        name, known = principal.removeprefix(_COMPONENT), names_of(app.components)
        check_exists(report, Code.UNKNOWN_COMPONENT, place, name, known)
    elif principal.startswith(_ACTION):
        name, known = principal.removeprefix(_ACTION), names_of(app.actions)
        check_exists(report, Code.UNKNOWN_ACTION, place, name, known)
    else:
        hint = f"Write `{_SANDBOX}`, `{_COMPONENT}<name>` or `{_ACTION}<name>`."
        report.error(Code.BAD_FORMAT, place, f"`{principal}` is not a principal", hint)
