"""A template of Azure Resource Manager while it is written."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from exclave.base.json_values import Json, JsonObject
from exclave.stacks.azure.arm.expressions import (
    bracket,
    write_conditions,
    write_id,
    write_title,
    write_value,
)
from exclave.stacks.azure.references import Body, Node, Resource
from exclave.stacks.azure.resources import (
    ADDRESS,
    ASSIGNMENT,
    DEFINITION,
    DEPLOYMENT,
    IDENTITY,
    MACHINE,
    NAT,
    NETWORK,
    REGISTRY,
    SECRET,
    SECURITY_GROUP,
    VAULT,
)

VERSIONS = {
    ADDRESS: "2024-05-01",
    ASSIGNMENT: "2022-04-01",
    DEFINITION: "2022-04-01",
    DEPLOYMENT: "2024-03-01",
    IDENTITY: "2024-11-30",
    MACHINE: "2024-07-01",
    NAT: "2024-05-01",
    NETWORK: "2024-05-01",
    REGISTRY: "2023-07-01",
    SECRET: "2023-07-01",
    SECURITY_GROUP: "2024-05-01",
    VAULT: "2023-07-01",
}


@dataclass(frozen=True, slots=True)
class TemplateBuilder:
    """The sections of a template, in the order in which they are filled."""

    parameters: dict[str, Json] = field(default_factory=dict)
    variables: dict[str, Json] = field(default_factory=dict)
    resources: list[Json] = field(default_factory=list)
    outputs: dict[str, Json] = field(default_factory=dict)

    def add(self, resource: Resource, body: Body, *, after: Sequence[Resource] = ()) -> None:
        """Add a resource that is made after others; an entry whose value is None is left out.

        The comment is its name in the Terraform form.
        """
        when = resource.conditions
        head: dict[str, Json] = {
            **({"condition": bracket(write_conditions(when))} if when else {}),
            "type": resource.type,
            "apiVersion": VERSIONS[resource.type],
            "name": write_title(resource),
            "comments": resource.name,
        }
        given = {name: write_value(value) for name, value in body.items() if value is not None}
        needed: list[Json] = [bracket(write_id(other)) for other in after]
        self.resources.append({**head, **given, **({"dependsOn": needed} if needed else {})})

    def add_variable(self, name: str, value: Node) -> None:
        """Add a variable."""
        self.variables[name] = write_value(value)

    def add_output(self, name: str, value: JsonObject | str, type_: str = "string") -> None:
        """Add an output for people to read."""
        self.outputs[name] = {"type": type_, "value": value}
