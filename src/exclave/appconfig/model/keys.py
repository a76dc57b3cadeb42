"""Checks of keys and choices: unknown, missing, or in an old spelling."""

from collections.abc import Mapping

from exclave.appconfig.diagnostics.codes import Code
from exclave.appconfig.diagnostics.report import Place, Report, guess, list_words
from exclave.appconfig.model.fields import Field, Need, Table


def check_choice(report: Report, place: Place, spec: Field, content: str) -> bool:
    """Report a value that is not one of the choices."""
    if content in spec.choices or content in spec.other_choices:
        return True
    if spec.templated and "{{" in content:
        return True
    if content == "" and spec.need is not Need.REQUIRED:
        return True
    if content in spec.old_choices:
        better = spec.old_choices[content]
        hint = f'Write "{better}".' if better else "It has no effect; remove it."
        report.warn(Code.DEPRECATED, place, f"`{content}` is an old spelling", hint)
        return True
    near = guess(content, spec.choices)
    known = f"Possible are {list_words(spec.choices)}."
    hint = f"Did you mean `{near}`? {known}" if near else known
    message = f"`{content}` is not a possible `{spec.key}`"
    report.error(Code.UNKNOWN_CHOICE, place, message, hint)
    return False


def check_needs(
    report: Report, place: Place, model: type[Table], data: Mapping[str, object]
) -> None:
    """Report required keys of a table that are missing or empty."""
    for key, spec in model.FIELDS.items():
        if spec.need is Need.OPTIONAL or data.get(key) not in (None, "", [], {}):
            continue
        if spec.unless is not None and data.get(spec.unless[0]) == spec.unless[1]:
            continue
        at = place.child(key) if key in data else place
        hint = spec.doc if not spec.example else f"{spec.doc} Example: {key} = {spec.example}"
        if spec.need is Need.REQUIRED:
            report.error(Code.MISSING_KEY, at, f"`{key}` is missing", hint)
        elif key not in data:
            report.warn(Code.WANTED_KEY, at, f"`{key}` is missing", hint)


def report_unknown(report: Report, place: Place, model: type[Table], key: str) -> None:
    """Report an unknown key of a table, with a suggestion."""
    dead = model.DEAD.get(key)
    if dead is not None and dead.silent:
        return
    if dead is not None and dead.error:
        message = f"`{key}` is not accepted any more"
        report.error(Code.REMOVED_KEY, place, message, dead.hint)
        return
    known = [*model.FIELDS, *model.ALIASES]
    near = guess(key, known)
    hint = dead.hint if dead else (f"Did you mean `{near}`?" if near else "")
    hint = hint or f"It has no effect; remove it. Known here are {list_words(known)}."
    report.warn_or_fail(Code.UNKNOWN_KEY, place, f"unknown key `{key}`", hint)
