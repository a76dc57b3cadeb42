"""`inputs.toml`, `inputs/`, `input_groups/`: what differs from install to install."""

from collections.abc import Mapping
from typing import ClassVar

from exclave.appconfig.model.fields import (
    REQUIRED,
    WANTED,
    Dead,
    Table,
    anything,
    flag,
    tables,
    text,
    texts,
)

INPUT_TYPES = ("string", "number", "list", "json", "bool", "yaml", "hcl")


class InputGroup(Table):
    """A heading under which inputs are shown."""

    DEAD: ClassVar[Mapping[str, Dead]] = {"group": Dead("A group has no group; remove the key.")}

    name: str = text("Unique; inputs name it.", '"network"', need=REQUIRED)
    description: str = text("Shown below the heading.", '"Network settings"', need=WANTED)
    display_name: str = text("The heading.", '"Network"')


class Input(Table):
    """A value that each install gives."""

    name: str = text(
        "Read in templates as `.nuon.inputs.inputs.<name>`.",
        '"domain"',
        need=REQUIRED,
        format="name",
    )
    display_name: str = text("The label.", '"Domain"', need=WANTED)
    description: str = text("The explanation.", '"Where the app is served."', need=WANTED)
    group: str = text("The name of a group.", '"network"', need=REQUIRED)
    type: str = text("The type of the value.", '"number"', choices=INPUT_TYPES, default="string")
    default: str | None = anything("Used when the install gives none; kept as text.", '"3"')
    required: bool = flag("An install must give a value, even if there is a default.")
    sensitive: bool = flag("Masked wherever it is shown.")
    internal: bool = flag("Hidden from customers.")
    user_configurable: bool = flag(
        "The customer sets it, as a parameter of the Stack; otherwise the vendor does."
    )


class InputsFile(Table):
    """All inputs and their groups in one file."""

    group: tuple[InputGroup, ...] = tables(InputGroup, "The groups, in the order shown.")
    input: tuple[Input, ...] = tables(Input, "The inputs, in the order shown.")
    source: str = text("A further file of inputs, from the app directory.", '"more/inputs.toml"')
    sources: tuple[str, ...] = texts("Further files of inputs.", '["more/inputs.toml"]')
