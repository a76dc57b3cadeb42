"""The Terraform module of a Stack in AWS while it is written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from exclave.base.json_values import Json
from exclave.stacks.aws.references import Node, Resource, When
from exclave.stacks.aws.terraform.expressions import write_condition, write_value
from exclave.stacks.aws.terraform.types import TYPES
from exclave.stacks.naming import write_snake
from exclave.stacks.terraform.module_files import ModuleFiles


@dataclass(slots=True)
class ModuleBuilder(ModuleFiles):
    """The files of a module, with resources whose arguments hold references."""

    def add(self, resource: Resource, arguments: Mapping[str, Node], **meta: Json) -> None:
        """Add a resource; with a condition, there is one of it or none."""
        name = write_snake(resource.name)
        self.add_resource(
            TYPES[resource.type], name, arguments, condition=resource.condition, **meta
        )

    def add_resource(
        self,
        type_: str,
        name: str,
        arguments: Mapping[str, Node],
        *,
        condition: str = "",
        **meta: Json,
    ) -> None:
        """Add a resource that has no equal in CloudFormation, such as an attachment."""
        count = {"count": f"${{{write_condition(condition)} ? 1 : 0}}"} if condition else {}
        given = {key: write_value(value) for key, value in arguments.items() if value is not None}
        self.add_block("resource", type_, name, {**count, **given, **meta})

    def add_policy(self, name: str, statements: Sequence[Node]) -> str:
        """Add the statements of a policy as local values; return the policy as an expression.

        The statements that a condition guards are a list of their own each.
        """
        lists: list[str] = []
        always: list[Json] = []
        for statement in statements:
            if isinstance(statement, When):
                key = f"{name}_if_{write_snake(statement.condition)}"
                self.add_local(key, [write_value(statement.then)])
                lists.append(
                    f"[for s in local.{key} : s if {write_condition(statement.condition)}]"
                )
            else:
                always.append(write_value(statement))
        self.add_local(name, always)
        joined = f"concat({', '.join([f'local.{name}', *lists])})" if lists else f"local.{name}"
        return f'${{jsonencode({{ Version = "2012-10-17", Statement = {joined} }})}}'
