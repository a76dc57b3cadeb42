"""A CloudFormation template with values for its parameters: what is decided before anything is made.

The emulated CloudFormation knows neither `Fn::Cidr` nor rules nor patterns, and does not see what a
changed condition changes. So conditions and parameters are worked out here, strictly, and the
emulation gets a template of resources that refer to each other only.
"""

import ipaddress
import re
from collections.abc import Mapping
from typing import Any

_VARIABLE = re.compile(r"\$\{([^!}][^}]*)\}")
_ABSENT = object()


class TemplateRefused(Exception):  # noqa: N818 - what CloudFormation does
    """CloudFormation would refuse the template with these values."""


class Resolver:
    """The values of one stack."""

    def __init__(
        self, template: Mapping[str, Any], values: Mapping[str, str], region: str = "eu-west-1"
    ) -> None:
        self.template, self.region = template, region
        self.parameters = self._read_parameters(values)

    def resolve(self) -> dict[str, Any]:
        """Return the template as it is applied: without parameters, conditions and rules."""
        self._check_rules()
        resources = {
            name: {key: self.walk(value) for key, value in body.items() if key != "Condition"}
            for name, body in self.template["Resources"].items()
            if self._exists(body)
        }
        outputs = {
            name: {key: self.walk(value) for key, value in body.items() if key != "Condition"}
            for name, body in self.template.get("Outputs", {}).items()
            if self._exists(body)
        }
        return {
            "AWSTemplateFormatVersion": self.template["AWSTemplateFormatVersion"],
            "Mappings": self.template.get("Mappings", {}),
            "Resources": resources,
            "Outputs": outputs,
        }

    def walk(self, node: Any) -> Any:  # noqa: C901 - one case for each function
        """Return a value in which only references to resources are left."""
        if isinstance(node, list):
            return [item for item in map(self.walk, node) if item is not _ABSENT]
        if not isinstance(node, Mapping):
            return node
        match dict(node):
            case {"Ref": "AWS::NoValue"}:
                return _ABSENT
            case {"Ref": str(name)} if name in self.parameters:
                return self.parameters[name]
            case {"Fn::If": [condition, yes, no]}:
                return self.walk(yes if self.is_true(condition) else no)
            case {"Fn::Cidr": arguments}:
                return _cut(*self.walk(arguments))
            case {"Fn::Base64": {"Ref": str(name)}} if name in self.parameters:
                return {"Fn::Base64": str(self.parameters[name])}
            case {"Fn::GetAZs": ""}:
                return [f"{self.region}{letter}" for letter in "abcd"]
            case {"Fn::Sub": argument}:
                return self._substitute(argument)
            case {"Fn::Select": [index, items]}:
                chosen = self.walk(items)
                if isinstance(chosen, list):
                    return chosen[int(index)]
                return {"Fn::Select": [int(index), chosen]}
        walked = {key: self.walk(value) for key, value in node.items()}
        return {key: value for key, value in walked.items() if value is not _ABSENT}

    def is_true(self, condition: str) -> bool:
        """Return whether a condition holds."""
        return self._test(self.template["Conditions"][condition])

    def _exists(self, body: Mapping[str, Any]) -> bool:
        return "Condition" not in body or self.is_true(body["Condition"])

    def _test(self, node: Any) -> bool:
        match dict(node):
            case {"Condition": name}:
                return self.is_true(name)
            case {"Fn::Equals": [left, right]}:
                return str(self.walk(left)) == str(right)
            case {"Fn::Not": [inner]}:
                return not self._test(inner)
        raise TemplateRefused(f"unknown condition {node}")

    def _substitute(self, argument: Any) -> Any:
        text, variables = argument if isinstance(argument, list) else (argument, {})

        def put(match: re.Match[str]) -> str:
            name = match[1]
            if name in self.parameters:
                return str(self.parameters[name])
            return match[0]

        text = _VARIABLE.sub(put, text)
        return {"Fn::Sub": [text, self.walk(variables)]} if variables else {"Fn::Sub": text}

    def _read_parameters(self, values: Mapping[str, str]) -> dict[str, Any]:
        declared = self.template.get("Parameters", {})
        unknown = set(values) - set(declared)
        if unknown:
            raise TemplateRefused(f"Parameters {sorted(unknown)} do not exist in the template")
        return {
            name: _read_value(name, body, values.get(name, body.get("Default")))
            for name, body in declared.items()
        }

    def _check_rules(self) -> None:
        for rule in self.template.get("Rules", {}).values():
            if self._test(rule["RuleCondition"]):
                for item in rule["Assertions"]:
                    if not self._test(item["Assert"]):
                        raise TemplateRefused(item["AssertDescription"])


def _read_value(name: str, body: Mapping[str, Any], value: Any) -> Any:
    if value is None:
        raise TemplateRefused(f"Parameters: [{name}] must have values")
    text = str(value)
    if "AllowedValues" in body and text not in body["AllowedValues"]:
        raise TemplateRefused(f"{name} must be one of {body['AllowedValues']}")
    if "AllowedPattern" in body and not re.fullmatch(body["AllowedPattern"], text):
        raise TemplateRefused(f"{name} must match {body['AllowedPattern']}")
    if len(text) < body.get("MinLength", 0):
        raise TemplateRefused(f"{name} is too short")
    if body["Type"] == "Number":
        number = float(text)
        if not body.get("MinValue", number) <= number <= body.get("MaxValue", number):
            raise TemplateRefused(f"{name} is out of its bounds")
        return int(number) if number.is_integer() else number
    return text.split(",") if body["Type"] == "CommaDelimitedList" else text


def _cut(network: str, count: Any, bits: Any) -> list[str]:
    """Return the pieces of a network, as `Fn::Cidr` does."""
    pieces = ipaddress.ip_network(network).subnets(new_prefix=32 - int(bits))
    found = [str(piece) for _, piece in zip(range(int(count)), pieces, strict=False)]
    if len(found) < int(count):
        raise TemplateRefused(f"{network} does not have {count} pieces")
    return found
