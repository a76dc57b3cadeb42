"""A strict reader of the part of Bicep that Stacks use: anything else is an error."""

import re
from dataclasses import dataclass, field
from typing import Any

_TEXT = r"'((?:[^'\\\n]|\\.)*)'"
_ESCAPE = re.compile(r"\\(u\{([0-9a-f]+)\}|n|r|t|\\|'|\$)")
_NAMES = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", "'": "'", "$": "$"}
_TYPES = {"string", "bool", "int", "object"}


@dataclass
class Parameter:
    """A parameter with its decorators."""

    type: str
    default: Any = None
    has_default: bool = False
    description: str = ""
    is_secure: bool = False
    limits: dict[str, Any] = field(default_factory=dict)

    def describe(self) -> dict[str, Any]:
        """Return it as a template declares it, without the description."""
        default = {"defaultValue": self.default} if self.has_default else {}
        return {"type": "securestring" if self.is_secure else self.type, **default, **self.limits}


@dataclass
class Module:
    """A template that is included."""

    path: str
    name: str = ""
    params: dict[str, str] = field(default_factory=dict)


@dataclass
class Bicep:
    """A file."""

    scope: str = ""
    parameters: dict[str, Parameter] = field(default_factory=dict)
    modules: dict[str, Module] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)


def parse_bicep(text: str) -> Bicep:
    """Return what a file declares."""
    bicep, pending = Bicep(), Parameter("")
    lines = text.split("\n")
    while lines:
        line = lines.pop(0)
        if not line or line.startswith("//"):
            continue
        if line.startswith("@"):
            _decorate(pending, line)
        elif match := re.fullmatch(rf"targetScope = {_TEXT}", line):
            bicep.scope = match[1]
        elif match := re.fullmatch(r"param ([A-Za-z]\w*) (\w+)(?: = (.*))?", line):
            assert match[2] in _TYPES, line
            pending.type = match[2]
            if match[3] is not None:
                pending.default, pending.has_default = read_literal(match[3]), True
            assert match[1] not in bicep.parameters
            bicep.parameters[match[1]], pending = pending, Parameter("")
        elif match := re.fullmatch(rf"module (\w+) {_TEXT} = {{", line):
            bicep.modules[match[1]] = _read_module(Module(match[2]), lines)
        elif match := re.fullmatch(r"output (\w+) (\w+) = (\w+)\.outputs\.(\w+)", line):
            assert match[2] in _TYPES
            assert match[3] in bicep.modules
            bicep.outputs[match[1]] = match[4]
        else:
            raise AssertionError(line)
    assert pending == Parameter("")
    return bicep


def _decorate(parameter: Parameter, line: str) -> None:
    match = re.fullmatch(r"@(\w+)\((.*)\)", line)
    assert match is not None, line
    name, argument = match.groups()
    match name:
        case "secure":
            assert argument == ""
            parameter.is_secure = True
        case "description":
            parameter.description = read_literal(argument)
        case "allowed":
            parameter.limits["allowedValues"] = [
                read_literal(item.strip()) for item in argument[1:-1].split(",")
            ]
        case "minLength" | "minValue" | "maxValue":
            parameter.limits[name] = int(argument)
        case _:
            raise AssertionError(line)


def _read_module(module: Module, lines: list[str]) -> Module:
    match = re.fullmatch(rf"  name: {_TEXT}", lines.pop(0))
    assert match is not None
    module.name = match[1]
    assert lines.pop(0) == "  params: {"
    while (line := lines.pop(0)) != "  }":
        key, _, value = line.strip().partition(": ")
        assert line.startswith("    ")
        module.params[key] = value
    assert lines.pop(0) == "}"
    return module


def read_literal(text: str) -> Any:
    """Return a text, a number or a flag; a text with an expression in it is an error."""
    if text in ("true", "false"):
        return text == "true"
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    match = re.fullmatch(_TEXT, text)
    assert match is not None, text
    bare = _ESCAPE.sub("", match[1])
    assert "\\" not in bare, text
    assert "${" not in re.sub(r"\\.", "_", match[1]), text
    return _ESCAPE.sub(lambda m: chr(int(m[2], 16)) if m[2] else _NAMES[m[1]], match[1])
