"""The Stack as a Bicep file: the parameters, and the template as a module."""

from collections.abc import Iterator
from typing import Final

from exclave.base.json_values import Json, JsonObject, list_or_empty, object_or_empty
from exclave.stacks.azure.arm.parameters import write_parameter
from exclave.stacks.azure.commands import TEMPLATE
from exclave.stacks.azure.names import write_name
from exclave.stacks.azure.parameters import StackParameter, is_subscription, list_parameters
from exclave.stacks.model import StackModel

_TYPES: Final = {"securestring": "string"}
_ESCAPES: Final = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_PRINTABLE: Final = 0x20


def write_bicep(model: StackModel) -> str:
    """Return the file, which lies beside the template."""
    return "".join(f"{line}\n" for line in _write_lines(model))


def _write_lines(model: StackModel) -> Iterator[str]:
    parameters = list_parameters(model)
    yield f"// The parameters of {TEMPLATE}, which is included as it is."
    yield f"targetScope = '{'subscription' if is_subscription(model) else 'resourceGroup'}'"
    for parameter in parameters:
        yield ""
        yield from _write_parameter(parameter)
    yield ""
    yield f"module exclave './{TEMPLATE}' = {{"
    yield f"  name: {quote(write_name(model, 'stack'))}"
    yield "  params: {"
    for parameter in parameters:
        yield f"    {parameter.name}: {parameter.name}"
    yield "  }"
    yield "}"
    yield ""
    yield "output outputs object = exclave.outputs.outputs"
    yield "output runnerVault string = exclave.outputs.runnerVault"


def _write_parameter(parameter: StackParameter) -> Iterator[str]:
    body = write_parameter(parameter)
    yield f"@description({quote(_find_description(body))})"
    if body["type"] == "securestring":
        yield "@secure()"
    if choices := list_or_empty(body.get("allowedValues")):
        yield f"@allowed([{', '.join(_write_literal(choice) for choice in choices)}])"
    for name in ("minLength", "minValue", "maxValue"):
        if name in body:
            yield f"@{name}({body[name]})"
    type_ = str(body["type"])
    line = f"param {parameter.name} {_TYPES.get(type_, type_)}"
    yield f"{line} = {_write_default(parameter, body)}" if "defaultValue" in body else line


def _find_description(body: JsonObject) -> str:
    return str(object_or_empty(body["metadata"])["description"])


def _write_default(parameter: StackParameter, body: JsonObject) -> str:
    """Return a default; here a text in brackets is no expression."""
    value = body["defaultValue"]
    return _write_literal((parameter.default or "") if value == f"[{parameter.default}" else value)


def _write_literal(value: Json) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case _:
            return quote(str(value))


def quote(text: str) -> str:
    """Return a text of Bicep in which nothing is an expression."""
    return "'" + "".join(map(_quote_character, text)).replace("${", "\\${") + "'"


def _quote_character(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    return f"\\u{{{ord(character):x}}}" if ord(character) < _PRINTABLE else character
