"""Read a CloudFormation template in JSON or YAML, within limits, as the JSON that it stands for.

Values are built from the events of a parser: nothing but JSON values can come out, depth and size
are limited before memory is spent, and short forms such as `!Ref` become their long ones.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import yaml

from exclave.base.json_values import Json, JsonObject

MOST_CHARACTERS: Final = 1_000_000
"""What CloudFormation reads at most."""
_DEEPEST: Final = 60
_LOADER: Final[type] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_STANDARD: Final = "tag:yaml.org,2002:"
_PLAIN_NAMES: Final = frozenset({"Ref", "Condition"})
"""Short forms whose long form has no `Fn::` before it."""
_FUNCTIONS: Final = frozenset(
    {
        "And", "Base64", "Cidr", "Equals", "FindInMap", "GetAZs", "GetAtt", "If", "ImportValue",
        "Join", "Not", "Or", "Select", "Split", "Sub",
    }
)  # fmt: skip
_TRUE: Final = frozenset({"true", "yes", "on"})
_FALSE: Final = frozenset({"false", "no", "off"})
_NULL: Final = frozenset({"", "~", "null"})
_INTEGER: Final = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
"""Digits with a zero before them stay text: they are account ids more often than octal numbers."""
_FLOAT: Final = re.compile(r"[-+]?(0|[1-9][0-9]*)\.[0-9]+([eE][-+]?[0-9]{1,2})?")


class TemplateError(ValueError):
    """A template that cannot be part of a Stack; the message is for its author."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        """From 1; 0 if it is about no line."""


def read_template(text: str) -> JsonObject:
    """Return a template as a JSON object; raise `TemplateError` if it is none."""
    if len(text) > MOST_CHARACTERS:
        message = f"a template may have {MOST_CHARACTERS:,} characters"
        raise TemplateError(message)
    value = _read_json(text) if text.lstrip()[:1] == "{" else _read_yaml(text)
    if not isinstance(value, dict):
        raise TemplateError("the template is not a mapping with `Resources`", 1)
    return value


def _read_json(text: str) -> Json:
    try:
        value: Json = json.loads(text, object_pairs_hook=_pair, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        try:
            return _read_yaml(text)  # YAML in braces
        except TemplateError:
            message = f"it is neither JSON nor YAML: {error.msg}"
            raise TemplateError(message, error.lineno) from error
    except TemplateError:
        raise
    except ValueError as error:
        raise TemplateError("a number in it has too many digits") from error
    except RecursionError as error:
        raise _refuse_depth() from error
    _check_depth(value)
    return value


def _pair(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    table: dict[str, Json] = {}
    for key, value in pairs:
        if key in table:
            message = f"the key `{key}` occurs twice"
            raise TemplateError(message)
        table[key] = value
    return table


def _refuse_constant(name: str) -> Json:
    message = f"`{name}` is not JSON"
    raise TemplateError(message)


def _check_depth(value: Json, depth: int = 0) -> None:
    if depth > _DEEPEST:
        raise _refuse_depth()
    children: Sequence[Json] = ()
    if isinstance(value, dict):
        children = list(value.values())
    elif isinstance(value, list):
        children = value
    for child in children:
        _check_depth(child, depth + 1)


def _refuse_depth(line: int = 0) -> TemplateError:
    return TemplateError(f"it is nested deeper than {_DEEPEST} levels", line)


def _read_yaml(text: str) -> Json:
    try:
        return _Builder(yaml.parse(text, Loader=_LOADER)).build()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = f"it is not YAML: {error.problem or 'it cannot be read'}"
        raise TemplateError(message, 0 if mark is None else mark.line + 1) from error
    except (yaml.YAMLError, UnicodeError) as error:
        raise TemplateError("it has a character that YAML does not know") from error


@dataclass(slots=True)
class _Builder:
    """Builds the value of one document."""

    events: Iterator[yaml.Event]

    def build(self) -> Json:
        """Return the value of the only document; None for an empty text."""
        value: Json = None
        documents = 0
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise TemplateError("it has more than one document", _find_line(event))
                value = self._read(next(self.events), 0)
        return value

    def _read(self, event: yaml.Event, depth: int) -> Json:
        line = _find_line(event)
        if depth > _DEEPEST:
            raise _refuse_depth(line)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise TemplateError("CloudFormation knows no anchors and aliases of YAML", line)
        match event:
            case yaml.ScalarEvent():
                return _read_scalar(event, line)
            case yaml.SequenceStartEvent():
                values = list(self._list(depth, yaml.SequenceEndEvent))
                return _apply_tag(event.tag, values, line)
            case yaml.MappingStartEvent():
                return _apply_tag(event.tag, self._read_mapping(depth), line)
            case _:
                raise TemplateError("it cannot be read", line)

    def _list(self, depth: int, end: type[yaml.Event]) -> Iterator[Json]:
        for event in self.events:
            if isinstance(event, end):
                return
            yield self._read(event, depth + 1)

    def _read_mapping(self, depth: int) -> dict[str, Json]:
        table: dict[str, Json] = {}
        for event in self.events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            line = _find_line(event)
            if not isinstance(event, yaml.ScalarEvent) or event.anchor:
                raise TemplateError("a key is not a text", line)
            if event.value in table or event.value == "<<":
                message = f"the key `{event.value}` occurs twice"
                if event.value == "<<":
                    message = "CloudFormation does not merge mappings with `<<`"
                raise TemplateError(message, line)
            table[event.value] = self._read(next(self.events), depth + 1)
        return table


def _find_line(event: yaml.Event) -> int:
    return 0 if event.start_mark is None else event.start_mark.line + 1


def _read_scalar(event: yaml.ScalarEvent, line: int) -> Json:
    tag = event.tag or ""
    if tag.startswith("!") and tag != "!":
        return _apply_tag(tag, event.value, line)
    if tag.startswith(_STANDARD):
        return _read_typed(tag.removeprefix(_STANDARD), event.value, line)
    return _resolve(event.value) if event.implicit[0] else event.value


def _read_typed(kind: str, text: str, line: int) -> Json:
    if kind == "str":
        return text
    value = _resolve(text)
    kinds = {"int": int, "float": float, "bool": bool, "null": type(None)}
    if kind not in kinds or type(value) is not kinds[kind]:
        message = f"`!!{kind}` cannot be read"
        raise TemplateError(message, line)
    return value


def _resolve(text: str) -> Json:
    """Return a text without quotes as CloudFormation reads it; dates stay text."""
    small = text.lower()
    if small in _NULL:
        return None
    if small in _TRUE | _FALSE:
        return small in _TRUE
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def _apply_tag(tag: str | None, value: Json, line: int) -> Json:
    """Return the long form of a short one, `!Ref a` as `{"Ref": "a"}`."""
    if not tag or tag in {"!", f"{_STANDARD}seq", f"{_STANDARD}map"}:
        return value
    name = tag.removeprefix("!")
    if name not in _FUNCTIONS | _PLAIN_NAMES:
        message = f"`{tag}` is not a function that a nested template may call"
        raise TemplateError(message, line)
    return {name if name in _PLAIN_NAMES else f"Fn::{name}": value}
