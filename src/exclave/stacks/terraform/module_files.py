"""A Terraform module while it is written, in files by subject."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from exclave.base.json_values import Json, JsonObject

Blocks = dict[str, dict[str, Json]]
_KINDS_WITH_TYPES = ("resource", "data", "ephemeral")


@dataclass(slots=True)
class ModuleFiles:
    """The blocks of a module by file, kind, type and name."""

    files: dict[str, dict[str, Blocks]] = field(default_factory=dict)
    subject: str = "main"
    """The file that blocks are added to."""

    def open_file(self, subject: str) -> None:
        """Add what follows to the file of a subject."""
        self.subject = subject
        self.files.setdefault(subject, {})

    def add_settings(self, version: str, providers: JsonObject) -> None:
        """Add the versions of Terraform and of providers that the module needs."""
        kinds = self.files.setdefault(self.subject, {})
        settings: dict[str, Json] = {"required_version": version, "required_providers": providers}
        kinds["terraform"] = {"": settings}

    def add_block(self, kind: str, type_: str, name: str, body: Json) -> None:
        """Add a block of a kind that has types, such as `resource`."""
        blocks = self.files.setdefault(self.subject, {}).setdefault(kind, {})
        blocks.setdefault(type_, {})[name] = body

    def add_data(self, type_: str, name: str, body: JsonObject) -> None:
        """Add something that is looked up."""
        self.add_block("data", type_, name, body)

    def add_ephemeral(self, type_: str, name: str, body: JsonObject) -> None:
        """Add something that is in no plan and no state."""
        self.add_block("ephemeral", type_, name, body)

    def add_local(self, name: str, value: Json) -> None:
        """Add a local value."""
        self.add_block("locals", "", name, value)

    def add_variable(self, name: str, body: JsonObject) -> None:
        """Add a variable."""
        self.add_block("variable", "", name, body)

    def add_output(self, name: str, description: str, value: str) -> None:
        """Add an output."""
        self.add_block("output", "", name, {"description": description, "value": value})

    def write_files(self) -> Mapping[str, str]:
        """Return the text of the files by name."""
        return {
            f"{subject}.tf.json": json.dumps(_nest(blocks), indent=2) + "\n"
            for subject, blocks in self.files.items()
        }


def _nest(blocks: Mapping[str, Blocks]) -> JsonObject:
    return {
        kind: types if kind in _KINDS_WITH_TYPES else types[""] for kind, types in blocks.items()
    }
