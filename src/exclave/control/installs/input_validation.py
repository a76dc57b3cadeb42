"""Check values against the inputs that an app declares; all mistakes are reported at once.

Values are text, always. An install stores only what was set; whatever was not set has the default
of the config that the install runs.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from exclave.appconfig.diagnostics.report import list_words, suggest
from exclave.appconfig.model.kinds.inputs import Input
from exclave.base.errors import InvalidInput
from exclave.control.install_state.hcl_syntax import find_hcl_flaw
from exclave.control.installs.yaml_syntax import find_yaml_flaw

PLACEHOLDER: Final = "((exclave:"
"""How a value begins that only the runner can fill in; nobody may give one as a value."""

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


@dataclass(frozen=True, slots=True)
class Mistake:
    """A mistake in the value of one input."""

    input: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        hint = f" {self.hint}" if self.hint else ""
        return f"`{self.input}`: {self.message}.{hint}"


class BadInputs(InvalidInput):
    """Values do not fit the inputs that the app declares."""

    code = "bad_inputs"
    hint = "The app's inputs.toml says what fits."

    def __init__(self, mistakes: Sequence[Mistake], install: str = "") -> None:
        self.inputs = list(dict.fromkeys(mistake.input for mistake in mistakes))
        texts = [str(mistake) for mistake in mistakes]
        listed = "".join(f"\n  - {text}" for text in texts)
        message = f"the input {texts[0]}" if len(texts) == 1 else f"{len(texts)} inputs:{listed}"
        facts = [{"input": mistake.input, "message": mistake.message} for mistake in mistakes]
        look = f"See what fits: exclave installs inputs get {install}" if install else None
        super().__init__(message, hint=look, mistakes=facts)


def write_placeholder(name: str) -> str:
    """Return the placeholder of a sensitive value, which the runner fills in."""
    return f"{PLACEHOLDER}input:{name}))"


def check_values(
    declared: Sequence[Input], given: Mapping[str, str], *, by_customer: bool = False
) -> None:
    """Refuse values that are not declared, not theirs to set, or not of their type."""
    mistakes = _find_mistakes(declared, given, by_customer=by_customer)
    if mistakes:
        raise BadInputs(mistakes)


def check_change(
    declared: Sequence[Input],
    given: Mapping[str, str],
    after: Mapping[str, str],
    install: str = "",
) -> None:
    """Refuse values of the vendor that do not fit, or after which one is missing: all at once.

    The install is named where there is one already: its own list of inputs helps most.
    """
    mistakes = _find_mistakes(declared, given, by_customer=False)
    named = {mistake.input for mistake in mistakes}
    mistakes += [
        mistake for mistake in _find_missing(declared, after) if mistake.input not in named
    ]
    if mistakes:
        raise BadInputs(mistakes, install)


def check_types(declared: Sequence[Input], values: Mapping[str, str]) -> None:
    """Refuse values that are not of the type that their input has now."""
    mistakes = [
        Mistake(declaration.name, f"its value is {flaw}", f"Its type is `{declaration.type}` now.")
        for declaration in declared
        if (flaw := find_flaw(declaration.type, values.get(declaration.name, "")))
    ]
    if mistakes:
        raise BadInputs(mistakes)


def _find_mistakes(
    declared: Sequence[Input], given: Mapping[str, str], *, by_customer: bool
) -> list[Mistake]:
    known = {declaration.name: declaration for declaration in declared}
    return [
        mistake
        for name, value in given.items()
        for mistake in _check_one(known, name, value, by_customer=by_customer)
    ]


def _find_missing(declared: Sequence[Input], values: Mapping[str, str]) -> list[Mistake]:
    """Return the required inputs of the vendor that have no value."""
    return [
        Mistake(declaration.name, _describe_missing(declaration))
        for declaration in declared
        if declaration.required
        and not declaration.user_configurable
        and not values.get(declaration.name)
    ]


def fill_values(declared: Sequence[Input], values: Mapping[str, str]) -> dict[str, str]:
    """Return the value of every declared input: as set, else its default, else empty."""
    return {
        declaration.name: values.get(declaration.name, declaration.default or "")
        for declaration in declared
    }


def hide_values(declared: Sequence[Input], values: Mapping[str, str]) -> dict[str, str]:
    """Return the value of every declared input, with placeholders for sensitive ones."""
    filled = fill_values(declared, values)
    secret = {declaration.name for declaration in declared if declaration.sensitive}
    return {name: _hide(name, value) if name in secret else value for name, value in filled.items()}


def find_flaw(kind: str, text: str) -> str:
    """Return why a text is not a value of a type, without quoting it; empty if it is one."""
    if not text:
        return ""
    match kind:
        case "number":
            return "" if _NUMBER.fullmatch(text) else "not a number"
        case "bool":
            return "" if text in {"true", "false"} else "neither `true` nor `false`"
        case "list":
            return _find_list_flaw(text)
        case "json":
            return _find_json_flaw(text)
        case "yaml":
            return find_yaml_flaw(text)
        case "hcl":
            return find_hcl_flaw(text)
        case _:
            return ""


def _hide(name: str, value: str) -> str:
    return write_placeholder(name) if value and not value.startswith(PLACEHOLDER) else value


def _check_one(
    known: Mapping[str, Input], name: str, value: str, *, by_customer: bool
) -> Iterator[Mistake]:
    declaration = known.get(name)
    if declaration is None:
        have = f"The app has {list_words(known)}." if known else "The app has no inputs."
        yield Mistake(name, "the app has no such input", suggest(name, known) or have)
        return
    if declaration.user_configurable and not by_customer:
        yield Mistake(
            name,
            "the customer sets it, not the vendor",
            "It is a parameter of the Stack that the customer runs.",
        )
    if by_customer and not declaration.user_configurable:
        yield Mistake(name, "the vendor sets it, not the customer")
    if declaration.required and not value:
        yield Mistake(name, "it is required and may not be empty")
    if PLACEHOLDER in value:
        yield Mistake(name, f"a value may not contain `{PLACEHOLDER}`")
    flaw = find_flaw(declaration.type, value)
    if flaw:
        shown = "" if declaration.sensitive else f" (given: {_shorten(value)})"
        yield Mistake(name, f"the value is {flaw}{shown}", f"Its type is `{declaration.type}`.")


def _describe_missing(declared: Input) -> str:
    about = declared.description or declared.display_name
    return f"it is required and has no value ({about})" if about else "it is required"


def _find_list_flaw(text: str) -> str:
    """Accept a JSON list, or words between commas."""
    if not text.lstrip().startswith("["):
        return ""
    flaw = _find_json_flaw(text)
    return f"not a list, although it begins with `[`: {flaw}" if flaw else ""


def _find_json_flaw(text: str) -> str:
    try:
        json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        return "nested too deeply"
    except json.JSONDecodeError as error:
        return f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
    except ValueError as error:
        return f"not JSON: {error}"
    return ""


def _refuse_constant(name: str) -> None:
    message = f"it has no {name}"
    raise ValueError(message)


def _shorten(value: str) -> str:
    flat = " ".join(value.split())
    return f"`{flat[:40]}…`" if len(flat) > 40 else f"`{flat}`"  # noqa: PLR2004 - half a line
