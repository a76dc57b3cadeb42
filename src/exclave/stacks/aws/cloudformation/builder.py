"""A CloudFormation template while it is written."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from exclave.base.json_values import Json, JsonObject
from exclave.stacks.aws.cloudformation.intrinsics import write_node
from exclave.stacks.aws.references import Node, Resource


@dataclass(frozen=True, slots=True)
class TemplateBuilder:
    """The sections of a template, in the order in which they are filled."""

    parameters: dict[str, Json] = field(default_factory=dict)
    rules: dict[str, Json] = field(default_factory=dict)
    mappings: dict[str, Json] = field(default_factory=dict)
    conditions: dict[str, Json] = field(default_factory=dict)
    resources: dict[str, Json] = field(default_factory=dict)
    outputs: dict[str, Json] = field(default_factory=dict)

    def add(
        self, resource: Resource, properties: Mapping[str, Node], **attributes: JsonObject | str
    ) -> None:
        """Add a resource; `attributes` stand beside its properties, such as `DependsOn`.

        A property whose value is None is left out.
        """
        given = {name: write_node(value) for name, value in properties.items() if value is not None}
        condition = {"Condition": resource.condition} if resource.condition else {}
        self.resources[resource.name] = {
            "Type": resource.type,
            **condition,
            **attributes,
            **({"Properties": given} if given else {}),
        }

    def add_output(self, name: str, description: str, value: Node, condition: str = "") -> None:
        """Add an output for people to read."""
        body = {"Description": description, "Value": write_node(value)}
        self.outputs[name] = {**({"Condition": condition} if condition else {}), **body}


def write_tags(tags: Mapping[str, str]) -> Node:
    """Return tags as most types of resources have them."""
    return tuple({"Key": name, "Value": value} for name, value in tags.items())
