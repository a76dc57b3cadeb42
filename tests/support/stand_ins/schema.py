"""The schema files of the stand-in providers, as Terraform's plugin protocol wants them."""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tf.gen import tfplugin_pb2 as pb

HERE = Path(__file__).parent
WRITE_ONLY = b"\x58\x01"
"""Field 11 of an attribute, `write_only`: the library is older than it, and passes it through."""


@dataclass(frozen=True)
class Block:
    """A resource, or a block in one."""

    body: dict[str, Any]

    @cached_property
    def attributes(self) -> dict[str, tuple[str, str]]:
        """The type and the flags of each attribute: `c`omputed, `o`ptional, `r`equired."""
        found = {name: said for name, said in self.body.items() if isinstance(said, str)}
        return {name: (said.split()[0], said.split()[1]) for name, said in found.items()}

    @cached_property
    def blocks(self) -> dict[str, "Block"]:
        """The nested blocks."""
        found = {name: told for name, told in self.body.items() if isinstance(told, dict)}
        return {name: Block(told["block"]) for name, told in found.items()}

    def describe(self) -> Any:
        """Return the block as the protocol has it."""
        return pb.Schema.Block(
            attributes=[self._describe_attribute(name) for name in self.attributes],
            block_types=[self._describe_nested(name) for name in self.blocks],
        )

    def _describe_attribute(self, name: str) -> Any:
        type_, flags = self.attributes[name]
        attribute = pb.Schema.Attribute(
            name=name,
            type=encode_type(type_),
            required="r" in flags,
            optional="o" in flags,
            computed="c" in flags,
        )
        if is_write_only(name):
            attribute.MergeFromString(WRITE_ONLY)
        return attribute

    def _describe_nested(self, name: str) -> Any:
        told = self.body[name]
        least, most = told["items"]
        modes = pb.Schema.NestedBlock.NestingMode
        return pb.Schema.NestedBlock(
            type_name=name,
            block=self.blocks[name].describe(),
            nesting=modes.SET if told["nesting"] == "set" else modes.LIST,
            min_items=least,
            max_items=most,
        )


def is_write_only(name: str) -> bool:
    """Return whether Terraform keeps the value of an attribute in no plan and no state."""
    return name.endswith("_wo")


def encode_type(said: str) -> bytes:
    """Return a type such as `list(string)` in the JSON of the protocol."""
    kind, _, inner = said.removesuffix(")").partition("(")
    return json.dumps([kind, inner] if inner else kind).encode()


def read_provider(name: str) -> dict[str, Block]:
    """Return the blocks of a provider: its resources, data sources, and itself as `provider`."""
    told = json.loads((HERE / f"{name}.json").read_text())
    return {kind: Block(body) for kind, body in told.items() if kind != "version"}


def read_version(name: str) -> str:
    """Return the version of the provider that the facts are of."""
    return str(json.loads((HERE / f"{name}.json").read_text())["version"])
