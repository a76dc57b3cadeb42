"""The vendor's own templates: which parameters the Stack gives them, and what they return."""

from collections.abc import Mapping
from dataclasses import dataclass

from exclave.base.json_values import JsonObject
from exclave.stacks.aws.parameters import list_parameters
from exclave.stacks.aws.references import Resource
from exclave.stacks.model import NestedModel, StackModel
from exclave.stacks.nested import FlatTemplate, flatten_template, write_prefix

STACK = "AWS::CloudFormation::Stack"


@dataclass(frozen=True, slots=True)
class NestedPlan:
    """A template of the vendor and its parts."""

    nested: NestedModel
    resource: Resource
    """What it is where it cannot be a part of the template."""
    flat: FlatTemplate

    @property
    def given(self) -> Mapping[str, str]:
        """The values that the app gives its parameters."""
        return self.nested.parameters or {}

    @property
    def is_file(self) -> bool:
        """Whether it is a file of the app, and not an address."""
        return not self.nested.address.startswith("https://")

    @property
    def declared(self) -> JsonObject:
        """The parameters that only the customer can fill in, by their names in the Stack."""
        return self.flat.parameters


def plan_nested(model: StackModel) -> tuple[NestedPlan, ...]:
    """Return the vendor's templates in their order; each has been checked before."""
    known = {parameter.name for parameter in list_parameters(model)}
    return tuple(
        NestedPlan(
            nested=nested,
            resource=Resource(STACK, write_prefix(nested.name)),
            flat=flatten_template(nested.name, nested.content, nested.parameters or {}, known)
            if nested.content
            else FlatTemplate(),
        )
        for nested in sorted(model.nested, key=lambda item: item.index)
    )
