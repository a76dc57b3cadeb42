"""The values that the templates of an app read, with their locations."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from exclave.appconfig.diagnostics.codes import Code
from exclave.appconfig.diagnostics.report import Place, Report
from exclave.appconfig.diagnostics.sources import Position
from exclave.appconfig.model.app import App, Entry, Text
from exclave.appconfig.model.kinds.runbooks import Runbook
from exclave.appconfig.templates import (
    ROOT,
    RUNBOOK_ROOTS,
    Fault,
    Use,
    find_position,
    find_refused,
    find_uses,
    is_template,
)

_MENTION = re.compile(r"nuon\.(?:install\.)?components\.([A-Za-z0-9_-]+)\.outputs\b")
_INPUT = re.compile(r"nuon\.(?:inputs|install)\.inputs\.([A-Za-z0-9_-]+)")
_ACTION = re.compile(r"\{\{[^}]*")
MOST_CHARACTERS = 1024 * 1024
"""The limit on actions in all templates of an app, so that reading an untrusted app ends."""
_BROKEN_DOT = re.compile(r"\{\{-?\s*(nuon\.[\w.]*)")
_BROKEN_ROOT = re.compile(
    r"\{\{-?[^}]*?(?<![\w.$)])\.((?:Nuon|install|inputs|components|sandbox|install_stack"
    r"|secrets|actions?|cloud_account)\.\w[\w.]*)"
)
"""Paths that only the tree of this format has; other tools start with `.Values` or `.metadata`."""


@dataclass(frozen=True, slots=True)
class Found:
    """One use in one text of one part."""

    entry: Entry
    text: Text
    use: Use

    @property
    def place(self) -> Place:
        """The location: in the TOML, or in the file that the TOML names."""
        return locate(self.text, self.use.position)


def find_all(app: App, report: Report) -> tuple[Found, ...]:
    """Return the uses in every template of an app; report templates that cannot be parsed."""
    all_found: list[Found] = []
    left = MOST_CHARACTERS
    for entry in app.entries:
        for text in entry.texts:
            left -= sum(map(len, _ACTION.findall(text.content)))
            if left < 0:
                message = f"all templates hold more than {MOST_CHARACTERS} characters in braces"
                hint = "The templates from here on are not checked."
                report.error(Code.FILE_TOO_LARGE, text.place, message, hint)
                return tuple(all_found)
            all_found += _find(entry, text, report)
    return tuple(all_found)


def locate(text: Text, position: Position) -> Place:
    """Return the location of a position inside a text."""
    if text.file is not None:
        return Place(text.file, (), position)
    source, at = text.place.source, text.place.at
    return Place(source, at, source.locate_inside(at, text.content, position))


def mentioned_components(entry: Entry) -> Iterator[tuple[str, Text]]:
    """Yield the components whose outputs any text mentions, in a template or not."""
    for text in entry.texts:
        if "components" in text.content:
            for match in _MENTION.finditer(text.content):
                yield match[1], text


def mentioned_inputs(entry: Entry) -> set[str]:
    """Return the inputs that any text mentions."""
    return {
        name
        for text in entry.texts
        if "inputs" in text.content
        for name in _INPUT.findall(text.content)
    }


def used_component(use: Use) -> str:
    """Return the component whose outputs are read; empty if there is none."""
    path = use.path
    match path:
        case (root, "components", name, *rest) if root == ROOT:
            return _with_outputs(name, rest, use)
        case (root, "install", "components", name, *rest) if root == ROOT:
            return _with_outputs(name, rest, use)
        case _:
            return ""


def used_input(use: Use) -> str:
    """Return the input that is read; empty if there is none."""
    match use.path:
        case (root, "inputs" | "install", "inputs", name, *_) if root == ROOT:
            return name
        case _:
            return ""


def _with_outputs(name: str, rest: list[str], use: Use) -> str:
    if rest:
        return name if rest[0] == "outputs" else ""
    return name if use.whole or not use.exact else ""


def _find(entry: Entry, text: Text, report: Report) -> Iterator[Found]:
    if "{{" not in text.content or text.remote:
        return
    if not text.is_rendered:
        _check_plain(text, report)
        return
    roots = (ROOT, *RUNBOOK_ROOTS) if isinstance(entry.value, Runbook) else (ROOT,)
    if not is_template(text.content, roots):
        _check_dot(text, report)
        return
    uses = find_uses(text.content, roots)
    if isinstance(uses, Fault):
        tell = report.warn if text.field.key == "readme" else report.error
        tell(Code.TEMPLATE_SYNTAX, locate(text, uses.position), uses.message, uses.hint)
        return
    for fault in find_refused(text.content):
        report.warn(Code.TEMPLATE_FUNCTION, locate(text, fault.position), fault.message, fault.hint)
    for use in uses:
        yield Found(entry, text, use)


def _check_plain(text: Text, report: Report) -> None:
    """Report a template in a text that is not rendered."""
    if not text.field.reference and is_template(text.content):
        message = f"`{text.field.key}` is not rendered: the template stays as it is"
        report.warn(Code.NOT_RENDERED, text.place, message, "Write the value itself.")


def _check_dot(text: Text, report: Report) -> None:
    """Report a text that looks like a template but lacks the leading dot."""
    match = _BROKEN_DOT.search(text.content)
    if match is not None:
        message = f"`{match[1]}` lacks the dot before it, so it stays as it is"
        place = locate(text, find_position(text.content, match.start(1)))
        report.warn(Code.TEMPLATE_DOT, place, message, f"Write `.{match[1]}`.")
        return
    match = _BROKEN_ROOT.search(text.content)
    if match is not None:
        message = f"`.{match[1]}` does not start from `.{ROOT}`, so it stays as it is"
        place = locate(text, find_position(text.content, match.start(1) - 1))
        hint = f"Write `.{ROOT}.{match[1].removeprefix('Nuon.')}`."
        if match[1].startswith("action."):
            hint = "Actions have no inputs; give values in steps[].env_vars."
        report.warn(Code.TEMPLATE_DOT, place, message, hint)
