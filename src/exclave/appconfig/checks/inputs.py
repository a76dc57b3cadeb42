"""Checks of inputs and their groups."""

import json

from exclave.appconfig.checks.common import check_exists, names_of
from exclave.appconfig.diagnostics.codes import Code
from exclave.appconfig.diagnostics.report import Place, Report
from exclave.appconfig.model.app import App
from exclave.appconfig.model.kinds.inputs import Input
from exclave.appconfig.model.kinds.runbooks import Runbook, RunbookInput


def check(app: App, report: Report) -> None:
    """Check the inputs of the app and of its runbooks."""
    groups = names_of(app.input_groups)
    for entry in app.entries_of(Input):
        if isinstance(entry.value, Input):
            place = entry.place.child("group")
            check_exists(report, Code.UNKNOWN_GROUP, place, entry.value.group, groups)
            _check_input(report, entry.place, entry.value)
    for entry in app.entries_of(Runbook):
        if isinstance(entry.value, Runbook):
            for index, declaration in enumerate(entry.value.input):
                _check_input(report, entry.place.child("input", index), declaration)


def _check_input(report: Report, place: Place, value: Input | RunbookInput) -> None:
    if value.default is None or value.default == "":
        return
    at = place.child("default")
    if value.required:
        message = f"`{value.name}` is required, so its default is never used"
        report.warn(Code.CONFLICT, at, message, "Remove `required` or `default`.")
    if value.sensitive:
        message = f"`{value.name}` is sensitive, and its default stands here for all to read"
        report.warn(Code.CONFLICT, at, message, "Remove the default, or make it a secret.")
    flaw = find_flaw(value.type, value.default)
    if flaw:
        message = f"the default of `{value.name}` is {flaw}"
        report_flaw(report, at, value.type, message)


def report_flaw(report: Report, place: Place, kind: str, message: str) -> None:
    """Report a default that does not fit its type; values stay text, so only JSON is parsed."""
    tell = report.error if kind == "json" else report.warn
    code = Code.BAD_FORMAT if kind == "json" else Code.DOUBTFUL_FORMAT
    tell(code, place, message, f"Its type is `{kind}`.")


def find_flaw(kind: str, text: str) -> str:
    """Return why a text is not a value of an input type; empty if it is one."""
    if "{{" in text:
        return ""
    match kind:
        case "number":
            return "" if _is_number(text) else f"not a number: `{text}`"
        case "bool":
            known = {"true", "false", "1", "0"}
            return "" if text.lower() in known else f"neither true nor false: `{text}`"
        case "json":
            return _find_json_flaw(text)
        case _:
            return ""


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _find_json_flaw(text: str) -> str:
    try:
        json.loads(text)
    except RecursionError:
        return "nested too deeply"
    except ValueError as error:
        return f"not JSON: {error}"
    return ""
