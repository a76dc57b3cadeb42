"""Checks that several modules share."""

from collections.abc import Collection, Iterable, Sequence

from exclave.appconfig.diagnostics.codes import Code
from exclave.appconfig.diagnostics.report import Place, Report, list_words, suggest
from exclave.appconfig.model.app import App, Entry
from exclave.appconfig.model.fields import Table
from exclave.appconfig.model.kinds.shared import RoleRules


def check_exists(
    report: Report,
    code: Code,
    place: Place,
    name: str,
    known: Collection[str],
    *,
    soft: bool = False,
) -> None:
    """Report a reference to a name that does not exist."""
    if not name or name in known:
        return
    what = code.removeprefix("unknown_").replace("_", " ")
    hint = suggest(name, known) or (
        f"There are {list_words(sorted(known))}." if known else f"This app has no {what} at all."
    )
    tell = report.warn if soft else report.error
    tell(code, place.value, f"there is no {what} `{name}`", hint)


def check_one_of(
    report: Report, place: Place, value: Table, keys: Sequence[str], *, needed: bool = True
) -> None:
    """Report unless exactly one of several keys is given."""
    given = [key for key in keys if getattr(value, key)]
    shown = list_words(keys)
    if not given and needed:
        report.error(Code.ONE_OF, place, f"one of {shown} is missing", f"Write one of {shown}.")
    elif len(given) > 1:
        message = f"{list_words(given)} exclude each other"
        report.error(Code.ONE_OF, place.child(given[1]), message, "Keep one of them.")


def check_unique(
    report: Report, place: Place, items: Iterable[Table], *, soft: bool = False
) -> None:
    """Report a name that occurs twice in a list of tables."""
    seen: set[str] = set()
    for index, item in enumerate(items):
        name = str(getattr(item, "name", ""))
        if name and name in seen:
            tell = report.warn if soft else report.error
            message = f"`{name}` occurs twice in `{place.at[-1]}`"
            at = place.child(index, "name").value
            tell(Code.DUPLICATE_NAME, at, message, "Give each its own name.")
        seen.add(name)


def check_role_rules(app: App, report: Report, entry: Entry) -> None:
    """Check the role rules of a component, sandbox or action."""
    value = entry.value
    if not isinstance(value, RoleRules):
        return
    seen: set[str] = set()
    for index, rule in enumerate(value.operation_roles):
        place = entry.place.child("operation_roles", index)
        if rule.operation and rule.operation not in value.OPERATIONS:
            message = f"`{rule.operation}` is not an operation of a {entry.section.rstrip('s')}"
            hint = f"Possible are {list_words(value.OPERATIONS)}."
            report.error(Code.UNKNOWN_CHOICE, place.child("operation"), message, hint)
        if rule.operation in seen:
            message = f"`{rule.operation}` has two roles"
            report.error(Code.CONFLICT, place, message, "Keep one of them.")
        seen.add(rule.operation)
        check_role(app, report, place.child("role"), rule.role)


def check_role(app: App, report: Report, place: Place, role: str, *, soft: bool = True) -> None:
    """Check that a role exists; spaces in its name are ignored."""
    known = {
        squeeze(known_role.name): known_role.name
        for known_role in (*app.roles, *app.break_glass_roles)
    }
    if role and squeeze(role) not in known:
        check_exists(report, Code.UNKNOWN_ROLE, place, role, known.values(), soft=soft)


def squeeze(name: str) -> str:
    """Return a name without spaces."""
    return "".join(name.split())


def names_of(items: Iterable[Table]) -> set[str]:
    """Return the names of tables."""
    return {str(getattr(item, "name", "")) for item in items} - {""}


def is_template(text: str) -> bool:
    """Return whether a text can only be checked once it is rendered."""
    return "{{" in text
