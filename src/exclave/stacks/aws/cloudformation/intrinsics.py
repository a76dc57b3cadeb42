"""References as CloudFormation writes them: `Ref`, `Fn::GetAtt`, `Fn::Sub`, `Fn::If`."""

from collections.abc import Mapping, Sequence

from exclave.base.json_values import Json, JsonObject
from exclave.stacks.aws.references import (
    Attribute,
    Base64,
    Commas,
    Fact,
    Joined,
    Native,
    Node,
    ParameterKind,
    ParameterRef,
    ResourceRef,
    Text,
    When,
)

NO_VALUE: JsonObject = {"Ref": "AWS::NoValue"}
FACTS = {
    Fact.ACCOUNT: "AWS::AccountId",
    Fact.REGION: "AWS::Region",
    Fact.PARTITION: "AWS::Partition",
    Fact.STACK: "AWS::StackId",
    Fact.DOMAIN: "AWS::URLSuffix",
}
ATTRIBUTES = {
    ("AWS::IAM::Role", Attribute.ARN): "Arn",
    ("AWS::IAM::InstanceProfile", Attribute.ARN): "Arn",
    ("AWS::Logs::LogGroup", Attribute.ARN): "Arn",
    ("AWS::ECR::Repository", Attribute.ARN): "Arn",
    ("AWS::EC2::EIP", Attribute.ID): "AllocationId",
}
"""What `Ref` does not return; of all else it is the id, the ARN or the name that is asked for."""


def write_node(node: Node) -> Json:
    """Return a value in CloudFormation's JSON."""
    match node:
        case Fact():
            return {"Ref": FACTS[node]}
        case None | bool() | int() | float() | str():
            return node
        case Sequence():
            return [write_node(item) for item in node]
        case Mapping():
            return {name: write_node(value) for name, value in node.items()}
        case _:
            return _write_reference(node)


def _write_reference(node: Text) -> Json:
    match node:
        case ParameterRef(name, ParameterKind.LIST):
            return {"Fn::Join": [",", {"Ref": name}]}
        case ParameterRef(name):
            return {"Ref": name}
        case ResourceRef(resource, attribute):
            field = ATTRIBUTES.get((resource.type, attribute))
            return {"Fn::GetAtt": [resource.name, field]} if field else {"Ref": resource.name}
        case Joined(parts):
            return write_substitution(parts)
        case Commas(items):
            return {"Fn::Join": [",", [write_node(item) for item in items]]}
        case Base64(text):
            return {"Fn::Base64": write_node(text)}
        case Native(expression):
            return expression
        case When(condition, then, otherwise):
            other = NO_VALUE if otherwise is None else write_node(otherwise)
            return {"Fn::If": [condition, write_node(then), other]}
        case _:
            return str(node)


def write_substitution(parts: Sequence[Text]) -> Json:
    """Return a text with references in it as `Fn::Sub`.

    What is no plain reference becomes a variable of it.
    """
    variables: dict[str, Json] = {}
    text = "".join(_write_part(part, variables) for part in parts)
    return {"Fn::Sub": [text, variables]} if variables else {"Fn::Sub": text}


def _write_part(part: Text, variables: dict[str, Json]) -> str:
    match part:
        case Fact():
            return f"${{{FACTS[part]}}}"
        case str():
            return escape(part)
        case ParameterRef(name, kind) if kind is not ParameterKind.LIST:
            return f"${{{name}}}"
        case ResourceRef(resource, attribute):
            field = ATTRIBUTES.get((resource.type, attribute))
            return f"${{{resource.name}.{field}}}" if field else f"${{{resource.name}}}"
        case Joined(parts):
            return "".join(_write_part(item, variables) for item in parts)
        case _:
            name = f"Value{len(variables) + 1}"
            variables[name] = write_node(part)
            return f"${{{name}}}"


def escape(text: str) -> str:
    """Return a text for `Fn::Sub` in which nothing is a variable."""
    return text.replace("${", "${!")
