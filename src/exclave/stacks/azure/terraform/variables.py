"""The variables of the module."""

from exclave.base.json_values import Json, JsonObject
from exclave.stacks.azure.parameters import StackParameter
from exclave.stacks.azure.references import ParameterKind
from exclave.stacks.azure.terraform.builder import ModuleBuilder
from exclave.stacks.terraform.text import escape, quote

_TYPES = {
    ParameterKind.TEXT: "string",
    ParameterKind.FLAG: "bool",
    ParameterKind.NUMBER: "number",
    ParameterKind.LIST: "list(string)",
}
VERSION_ABOUT = "Raise it to store a new value: values are in no plan and no state"


def add_variable(builder: ModuleBuilder, parameter: StackParameter) -> None:
    """Add the variable of a parameter; a secret one comes with the version of its value."""
    name = parameter.variable
    about = f"{parameter.label}: {parameter.about}" if parameter.about else parameter.label
    body: dict[str, Json] = {"description": about, "type": _TYPES[parameter.kind]}
    if parameter.default is not None:
        body["default"] = _write_default(parameter)
    if parameter.secret:
        body |= {"sensitive": True, "ephemeral": True}
    else:
        body["nullable"] = False
    if rules := _list_rules(parameter):
        body["validation"] = rules
    builder.add_variable(name, body)
    if parameter.secret:
        version: JsonObject = {"description": VERSION_ABOUT, "type": "number", "default": 1}
        builder.add_variable(f"{name}_version", version)


def _write_default(parameter: StackParameter) -> Json:
    default = parameter.default or ""
    match parameter.kind:
        case ParameterKind.FLAG:
            return default == "true"
        case ParameterKind.NUMBER:
            return float(default) if "." in default else int(default)
        case ParameterKind.LIST:
            return [item.strip() for item in default.split(",")] if default else []
        case ParameterKind.TEXT:
            return default


def _list_rules(parameter: StackParameter) -> list[JsonObject]:
    value, rules = f"var.{parameter.variable}", []
    if parameter.choices:
        choices = ", ".join(f'"{choice}"' for choice in parameter.choices)
        rules.append((f"contains([{choices}], {value})", f"One of {', '.join(parameter.choices)}."))
    if parameter.bounds:
        low, high = parameter.bounds
        rules.append((f"{value} >= {low} && {value} <= {high}", f"Between {low} and {high}."))
    if parameter.pattern:
        check = f'can(regex("{quote(parameter.pattern)}", {value}))'
        rules.append((check, f"It has to match {parameter.pattern}"))
    elif parameter.default is None and parameter.kind is ParameterKind.TEXT:
        rules.append((f'{value} != ""', "It must not be empty."))
    return [
        {"condition": f"${{{condition}}}", "error_message": escape(message)}
        for condition, message in rules
    ]
