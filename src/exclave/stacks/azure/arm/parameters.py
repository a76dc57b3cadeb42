"""The parameters of a template, and the variables that are made of them."""

from exclave.base.json_values import Json, JsonObject
from exclave.stacks.azure.arm.builder import TemplateBuilder
from exclave.stacks.azure.arm.expressions import escape, quote, write_words
from exclave.stacks.azure.document import has_registry
from exclave.stacks.azure.parameters import StackParameter
from exclave.stacks.azure.references import ParameterKind
from exclave.stacks.model import StackModel

_OF_GROUP = "resourceGroupName"


def add_parameter(builder: TemplateBuilder, parameter: StackParameter) -> None:
    """Add a parameter; that of the resource group belongs to the template around this one."""
    if parameter.name != _OF_GROUP:
        builder.parameters[parameter.name] = write_parameter(parameter)


def write_parameter(parameter: StackParameter) -> JsonObject:
    """Return the declaration of a parameter."""
    about = f"{parameter.label}: {parameter.about}" if parameter.about else parameter.label
    body: dict[str, Json] = {"type": _find_type(parameter)}
    if parameter.default is not None:
        body["defaultValue"] = _write_default(parameter)
    elif body["type"] in ("string", "securestring"):
        body["minLength"] = 1
    if parameter.choices:
        body["allowedValues"] = list(parameter.choices)
    if parameter.bounds:
        body["minValue"], body["maxValue"] = parameter.bounds
    return {**body, "metadata": {"description": write_words(about)}}


def _find_type(parameter: StackParameter) -> str:
    if parameter.secret or parameter.name == "enrolmentCode":
        return "securestring"
    if parameter.kind is ParameterKind.FLAG:
        return "bool"
    return "int" if parameter.is_whole else "string"


def _write_default(parameter: StackParameter) -> Json:
    default = parameter.default or ""
    if parameter.kind is ParameterKind.FLAG:
        return default == "true"
    if parameter.is_whole:
        return int(default)
    if parameter.kind is ParameterKind.LIST:
        return escape(",".join(item.strip() for item in default.split(",")))
    return escape(default)


def add_variables(builder: TemplateBuilder, model: StackModel) -> None:
    """Add the conditions by which parts of the Stack exist or not, and names of this group."""
    mode = "equals(parameters('runnerMode'), 'plan-only')"
    unique = f"uniqueString(resourceGroup().id, {quote(model.install_id)})"
    location = "if(empty(parameters('location')), resourceGroup().location, parameters('location'))"
    expressions = {
        "enabled": "parameters('runnerEnabled')",
        "planOnly": f"and(parameters('runnerEnabled'), {mode})",
        "full": f"and(parameters('runnerEnabled'), not({mode}))",
        "newNetwork": "empty(parameters('runnerSubnetId'))",
        "hasCertificates": "not(empty(parameters('caBundle')))",
        "hasDiskKey": "not(empty(parameters('diskEncryptionSetId')))",
        "location": location,
        "runnerVault": f"concat('xr', {unique})",
        "secretVault": f"concat('xs', {unique})",
    }
    if has_registry(model):
        expressions["registry"] = f"concat('xc', {unique})"
    for name, expression in expressions.items():
        builder.variables[name] = f"[{expression}]"
