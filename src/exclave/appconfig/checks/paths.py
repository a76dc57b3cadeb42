"""Checks that the values templates read exist, and exist by the time of rendering."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from exclave.appconfig.checks.common import names_of
from exclave.appconfig.diagnostics.codes import Code
from exclave.appconfig.diagnostics.positions import KeyPath
from exclave.appconfig.diagnostics.report import Place, Report, guess_closely, list_words, suggest
from exclave.appconfig.model.app import App
from exclave.appconfig.model.kinds.runbooks import Runbook
from exclave.appconfig.templates import ROOT
from exclave.appconfig.tree import (
    ANYTHING,
    COMPONENT_KEYS,
    HINTS,
    IMAGE_KEYS,
    OUTPUTLESS,
    SCOPES,
    STACK_OUTPUTS,
    TREE,
    WORKFLOW_KEYS,
    Branch,
)
from exclave.appconfig.uses import Found


def check(app: App, uses: Sequence[Found], report: Report) -> None:
    """Check every value that a template reads."""
    checker = _Checker(app, report)
    for use in uses:
        checker.check(use)


_OLD_KEYS = ("populated", "components")
"""Keys that some documents place beside the components."""


@dataclass(frozen=True, slots=True)
class _Problem:
    code: Code
    message: str
    hint: str = ""
    soft: bool = False


class _Checker:
    def __init__(self, app: App, report: Report) -> None:
        self.report = report
        self.app = app
        self.reported: set[tuple[int, int, _Problem]] = set()
        """What was reported for a line of a text, or (0) for the whole text."""
        self.inputs = names_of(app.inputs)
        self.secrets = names_of(app.secrets)
        self.actions = {action.name: action for action in app.actions}
        self.types = {component.name: component.type for component in app.components}
        self.special: Mapping[str, Callable[[tuple[str, ...]], _Problem | None]] = {
            "inputs": self._check_input,
            "components": self._check_component,
            "actions": self._check_action,
            "secrets": self._check_secret,
            "stack_outputs": self._check_stack_output,
        }

    def check(self, mention: Found) -> None:
        path = mention.use.path
        if not path:
            return
        if path[0] != ROOT:
            problem = self._check_other_root(mention)
        else:
            problem = self._check_scope(mention) or self._check_path(path[1:])
        if problem is not None and not self._is_reported(mention, problem):
            soft = problem.soft or mention.use.optional or mention.text.field.key == "readme"
            tell = self.report.warn if soft else self.report.error
            place: Place = mention.place
            tell(problem.code, place, problem.message, problem.hint)

    def _is_reported(self, mention: Found, problem: _Problem) -> bool:
        """Return whether this mistake was already reported.

        That is the case for the same line, and for a value used here by another name, such as the
        dot inside `with` or a variable.
        """
        text, line = mention.text, mention.use.position.line
        at_line, in_text = (id(text), line, problem), (id(text), 0, problem)
        written = text.content.split("\n")[line - 1][mention.use.position.column - 1 :]
        derived = ROOT not in written.partition("}}")[0] and in_text in self.reported
        known = derived or at_line in self.reported
        self.reported |= {at_line, in_text}
        return known

    def _check_other_root(self, mention: Found) -> _Problem | None:
        path, entry = mention.use.path, mention.entry
        shown = _show(path)
        if not isinstance(entry.value, Runbook):
            hint = f"Templates start from `.{ROOT}`."
            return _Problem(Code.UNKNOWN_PATH, f"there is no `{shown}`", hint, soft=True)
        match path:
            case ("runbook_inputs", name, *_):
                known = names_of(entry.value.input)
                return None if name in known else _missing(Code.UNKNOWN_INPUT, name, known)
            case ("runbook_outputs", name, *_):
                return _check_step(entry.value, mention.text.at, name)
            case ("runbook_inputs" | "runbook_outputs",):
                return None
            case _:
                hint = f"Templates start from `.{ROOT}`."
                return _Problem(Code.UNKNOWN_PATH, f"there is no `{shown}`", hint, soft=True)

    def _check_scope(self, mention: Found) -> _Problem | None:
        scope = SCOPES.get(mention.entry.section)
        if scope is None:
            return None
        path = mention.use.path
        for late in scope.late:
            if path[1 : 1 + len(late)] == late:
                message = f"`{_show(path)}` does not exist yet when {scope.when}"
                return _Problem(Code.TEMPLATE_SCOPE, message, scope.hint, soft=scope.soft)
        return None

    def _check_path(self, path: tuple[str, ...]) -> _Problem | None:
        branch: Branch = TREE
        for index, key in enumerate(path):
            if isinstance(branch, str):
                return self._check_special(branch, path[index:])
            if key not in branch:
                shown = _show((ROOT, *path[: index + 1]))
                hint = HINTS.get(path[: index + 1]) or self._hint(path, index, branch)
                return _Problem(Code.UNKNOWN_PATH, f"there is no `{shown}`", hint, soft=True)
            branch = branch[key]
        return None

    def _hint(self, path: tuple[str, ...], index: int, branch: Mapping[str, Branch]) -> str:
        key = path[index]
        if path[:index] == ("inputs",) and key in self.inputs:
            return f"Write `.{ROOT}.inputs.inputs.{key}`."
        return suggest(key, branch) or f"There are {list_words(sorted(branch))}."

    def _check_special(self, kind: str, rest: tuple[str, ...]) -> _Problem | None:
        return None if kind == ANYTHING else self.special[kind](rest)

    def _check_input(self, rest: tuple[str, ...]) -> _Problem | None:
        known = self.inputs
        return None if rest[0] in known else _missing(Code.UNKNOWN_INPUT, rest[0], known)

    def _check_secret(self, rest: tuple[str, ...]) -> _Problem | None:
        known = self.secrets
        return None if rest[0] in known else _missing(Code.UNKNOWN_SECRET, rest[0], known)

    def _check_component(self, rest: tuple[str, ...]) -> _Problem | None:
        name = rest[0]
        if name not in self.types and name in _OLD_KEYS:
            hint = f"Write the name of a component after `.{ROOT}.components`."
            message = f"there is no `.{ROOT}.components.{name}`"
            return _Problem(Code.UNKNOWN_PATH, message, hint, soft=True)
        if name not in self.types:
            return _missing(Code.UNKNOWN_COMPONENT, name, self.types)
        if len(rest) > 1 and rest[1] not in COMPONENT_KEYS:
            key = rest[1]
            hint = f"Write `.{ROOT}.components.{name}.outputs.{key}`."
            message = f"a component has no `{key}`"
            return _Problem(Code.UNKNOWN_PATH, message, hint, soft=True)
        if len(rest) > 2 and rest[1] == "outputs":  # noqa: PLR2004 - name, outputs, key
            return self._check_output(name, rest[2])
        return None

    def _check_output(self, name: str, key: str) -> _Problem | None:
        kind = self.types[name]
        if kind in OUTPUTLESS:
            message = f"`{name}` is a {kind}, which has no outputs"
            hint = "Terraform, Pulumi and Helm components have outputs, and so have images."
            return _Problem(Code.NO_OUTPUTS, message, hint, soft=True)
        if kind in {"container_image", "docker_build"} and key in IMAGE_KEYS:
            hint = f"Write `.{ROOT}.components.{name}.outputs.image.{key}`."
            message = f"the outputs of an image have no `{key}`"
            return _Problem(Code.UNKNOWN_PATH, message, hint, soft=True)
        return None

    def _check_action(self, rest: tuple[str, ...]) -> _Problem | None:
        name = rest[0]
        if name not in self.actions:
            return _missing(Code.UNKNOWN_ACTION, name, self.actions)
        if len(rest) > 1 and rest[1] not in WORKFLOW_KEYS:
            hint = f"There are {list_words(WORKFLOW_KEYS)}."
            message = f"an action has no `{rest[1]}`"
            return _Problem(Code.UNKNOWN_PATH, message, hint, soft=True)
        match rest[1:]:
            case ("outputs", "steps", step, *_):
                steps = names_of(self.actions[name].steps)
                if step not in steps:
                    return _missing(Code.UNKNOWN_ACTION, step, steps, soft=True, what="step")
        return None

    def _check_stack_output(self, rest: tuple[str, ...]) -> _Problem | None:
        key, known = rest[0], STACK_OUTPUTS.get(self.app.cloud, ())
        if key in known:
            return None
        if self.app.cloud != "aws" or not key.endswith("_arn"):
            near = guess_closely(key, known)
            message, hint = f"a Stack has no output `{key}`", f"Did you mean `{near}`?"
            return _Problem(Code.UNKNOWN_PATH, message, hint, soft=True) if near else None
        name = key.removesuffix("_arn")
        if name in self.secrets or any("{{" in secret for secret in self.secrets):
            return None
        return _missing(Code.UNKNOWN_SECRET, name, self.secrets, soft=True)


def _check_step(runbook: Runbook, at: KeyPath, name: str) -> _Problem | None:
    """Check that a step exists and runs before the step that reads its outputs."""
    steps = [step.name for step in runbook.steps]
    if name not in steps:
        return _missing(Code.UNKNOWN_ACTION, name, steps, soft=True, what="step")
    match at:
        case ("steps", int(index), *_) if name not in steps[:index] and name != steps[index]:
            message = f"the step `{name}` has not run yet when this is rendered"
            hint = "Only the steps before it have outputs."
            return _Problem(Code.TEMPLATE_SCOPE, message, hint, soft=True)
    return None


def _missing(
    code: Code,
    name: str,
    known: Sequence[str] | set[str] | Mapping[str, object],
    *,
    soft: bool = False,
    what: str = "",
) -> _Problem:
    what = what or code.removeprefix("unknown_").replace("_", " ")
    hint = suggest(name, known)
    if not hint:
        hint = f"There are {list_words(sorted(known))}." if known else f"This app has no {what}."
    return _Problem(code, f"there is no {what} `{name}`", hint, soft=soft)


def _show(path: tuple[str, ...]) -> str:
    return "".join(f".{key}" for key in path)
