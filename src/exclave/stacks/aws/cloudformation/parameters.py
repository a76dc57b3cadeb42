"""Parameters, conditions and rules of the template, and how a console shows them."""

from collections.abc import Sequence

from exclave.base.json_values import Json, JsonObject
from exclave.stacks.aws.cloudformation.builder import TemplateBuilder
from exclave.stacks.aws.parameters import (
    StackParameter,
    build_input_parameter,
    build_secret_parameter,
)
from exclave.stacks.aws.references import ParameterKind
from exclave.stacks.aws.resources import NEW_VPC, name_switch
from exclave.stacks.model import StackModel
from exclave.stacks.naming import write_camel

_TYPES = {ParameterKind.NUMBER: "Number", ParameterKind.LIST: "CommaDelimitedList"}
_FLAG = ("true", "false")


def add_parameters(builder: TemplateBuilder, parameters: Sequence[StackParameter]) -> None:
    """Add the parameters."""
    for parameter in parameters:
        builder.parameters[parameter.name] = _write_parameter(parameter)


def _write_parameter(parameter: StackParameter) -> JsonObject:
    body: dict[str, Json] = {"Type": _TYPES.get(parameter.kind, "String")}
    if parameter.about:
        body["Description"] = parameter.about
    if parameter.default is not None:
        body["Default"] = parameter.default
    choices = _FLAG if parameter.kind is ParameterKind.FLAG else parameter.choices
    if choices:
        body["AllowedValues"] = list(choices)
    if parameter.pattern:
        body["AllowedPattern"] = parameter.pattern
    elif parameter.default is None and body["Type"] == "String" and not choices:
        body["MinLength"] = 1
    if parameter.bounds:
        body["MinValue"], body["MaxValue"] = parameter.bounds
    if parameter.secret:
        body["NoEcho"] = True
    return body


def add_conditions(builder: TemplateBuilder, model: StackModel) -> None:
    """Add the conditions by which parts of the Stack exist or not."""
    add = builder.conditions
    add["Enabled"] = _equals("RunnerEnabled", "true")
    add["Stopped"] = {"Fn::Not": [{"Condition": "Enabled"}]}
    add["PlanOnly"] = _equals("RunnerMode", "plan-only")
    add[NEW_VPC] = _equals("VpcId", "")
    add["HasBoundary"] = _is_given("PermissionsBoundaryArn")
    add["HasKey"] = _is_given("KmsKeyArn")
    add["HasCaBundle"] = _is_given("CaBundleParameter")
    add["SessionManagerOn"] = _equals("SessionManager", "true")
    for role in model.roles:
        add[name_switch(role)] = _equals(name_switch(role), "true")
    for secret in model.secrets:
        if not secret.auto_generate:
            name = f"Given{write_camel(secret.name)}"
            add[name] = _is_given(build_secret_parameter(secret).name)
    for item in model.inputs:
        if item.sensitive:
            parameter = build_input_parameter(item)
            add[f"Given{parameter.name}"] = _is_given(parameter.name)


def add_rules(builder: TemplateBuilder) -> None:
    """Add what is checked before anything is made."""
    text = "An existing VPC needs the subnet of the runner too: RunnerSubnetId."
    builder.rules["SubnetOfExistingVpc"] = {
        "RuleCondition": _is_given("VpcId"),
        "Assertions": [{"Assert": _is_given("RunnerSubnetId"), "AssertDescription": text}],
    }


def write_interface(builder: TemplateBuilder, parameters: Sequence[StackParameter]) -> JsonObject:
    """Return how the console groups and labels the parameters; the vendor's own ones come last."""
    groups: dict[str, list[str]] = {}
    for parameter in parameters:
        groups.setdefault(parameter.group.value, []).append(parameter.name)
    known = {parameter.name for parameter in parameters}
    if foreign := [name for name in builder.parameters if name not in known]:
        groups["The vendor's own templates"] = foreign
    return {
        "ParameterGroups": [
            {"Label": {"default": group}, "Parameters": names} for group, names in groups.items()
        ],
        "ParameterLabels": {
            parameter.name: {"default": parameter.label} for parameter in parameters
        },
    }


def _equals(parameter: str, value: str) -> JsonObject:
    return {"Fn::Equals": [{"Ref": parameter}, value]}


def _is_given(parameter: str) -> JsonObject:
    return {"Fn::Not": [_equals(parameter, "")]}
