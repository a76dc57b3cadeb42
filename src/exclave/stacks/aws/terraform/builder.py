"""A Terraform module while it is written, in files by subject."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from exclave.base.json_values import Json, JsonObject
from exclave.stacks.aws.references import Node, Resource, When
from exclave.stacks.aws.terraform.expressions import write_condition, write_value
from exclave.stacks.aws.terraform.types import TYPES
from exclave.stacks.naming import write_snake

Blocks = dict[str, dict[str, Json]]
_KINDS_WITH_TYPES = ("resource", "data", "ephemeral")


@dataclass(slots=True)
class ModuleBuilder:
    """The blocks of a module by file, kind and name."""

    files: dict[str, dict[str, Blocks]] = field(default_factory=dict)
    subject: str = "main"
    """The file that blocks are added to."""

    def open_file(self, subject: str) -> None:
        """Add what follows to the file of a subject."""
        self.subject = subject
        self.files.setdefault(subject, {})

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
        self._put("resource", type_, name, {**count, **given, **meta})

    def add_data(self, type_: str, name: str, body: JsonObject) -> None:
        """Add something that is looked up."""
        self._put("data", type_, name, body)

    def add_ephemeral(self, type_: str, name: str, body: JsonObject) -> None:
        """Add something that is in no plan and no state."""
        self._put("ephemeral", type_, name, body)

    def add_local(self, name: str, value: Json) -> None:
        """Add a local value."""
        self._put("locals", "", name, value)

    def add_variable(self, name: str, body: JsonObject) -> None:
        """Add a variable."""
        self._put("variable", "", name, body)

    def add_output(self, name: str, description: str, value: str) -> None:
        """Add an output."""
        self._put("output", "", name, {"description": description, "value": value})

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

    def write_files(self) -> Mapping[str, str]:
        """Return the files as text, by subject."""
        return {
            subject: json.dumps(self._nest(blocks), indent=2) + "\n"
            for subject, blocks in self.files.items()
        }

    def _put(self, kind: str, type_: str, name: str, body: Json) -> None:
        blocks = self.files.setdefault(self.subject, {}).setdefault(kind, {})
        blocks.setdefault(type_, {})[name] = body

    @staticmethod
    def _nest(blocks: Mapping[str, Blocks]) -> JsonObject:
        return {
            kind: types if kind in _KINDS_WITH_TYPES else types[""]
            for kind, types in blocks.items()
        }
