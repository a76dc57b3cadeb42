"""The Terraform module of a Stack in Azure while it is written."""

from dataclasses import dataclass

from exclave.base.json_values import Json
from exclave.stacks.azure.references import Body, Resource
from exclave.stacks.azure.resources import TWINS
from exclave.stacks.azure.terraform.expressions import write_conditions, write_value
from exclave.stacks.naming import write_snake
from exclave.stacks.terraform.module_files import ModuleFiles


@dataclass(slots=True)
class ModuleBuilder(ModuleFiles):
    """The files of a module, with resources whose arguments hold references."""

    def add(self, resource: Resource, arguments: Body, **meta: Json) -> None:
        """Add a resource; with conditions, there is one of it or none."""
        name = write_snake(resource.name)
        self.add_resource(TWINS[resource.type], name, arguments, resource.conditions, **meta)

    def add_resource(
        self,
        type_: str,
        name: str,
        arguments: Body,
        conditions: tuple[str, ...] = (),
        **meta: Json,
    ) -> None:
        """Add a resource that is a part of another one in a template, such as a subnet."""
        when = write_conditions(conditions)
        count = {"count": f"${{({when}) ? 1 : 0}}"} if when else {}
        given = {key: write_value(value) for key, value in arguments.items() if value is not None}
        self.add_block("resource", type_, name, {**count, **given, **meta})
