"""How a key of the format is described: one description drives reading, checks, schema and docs."""

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, ClassVar, Final

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class Shape(StrEnum):
    """What a value looks like in TOML."""

    TEXT = "text"
    FLAG = "bool"
    NUMBER = "int"
    ANY = "any"
    """A scalar, list or table that is kept as text."""
    TEXTS = "list of text"
    TEXT_MAP = "map of text"
    FLAG_MAP = "map of bool"
    MAPS = "map of text, or list of such maps"
    TABLE = "table"
    TABLES = "list of tables"
    TABLE_MAP = "map of tables"


class Need(StrEnum):
    """What happens when a key is missing."""

    REQUIRED = "required"
    WANTED = "wanted"
    """Its absence is a warning: the format asks for it, and its tools let it pass."""
    OPTIONAL = "optional"


class Since(StrEnum):
    """Which generation of the format knows a key."""

    OLD = "D"
    NEW = "N"


@dataclass(frozen=True, slots=True)
class Field:
    """One key of one table."""

    shape: Shape
    doc: str
    key: str = ""
    attribute: str = ""
    need: Need = Need.OPTIONAL
    default: object = None
    since: Since = Since.OLD
    templated: bool = False
    reference: bool = False
    """The value may name a file whose content takes its place."""
    path: bool = False
    """The value is a plain path below the app directory whose content takes its place."""
    choices: tuple[str, ...] = ()
    old_choices: Mapping[str, str] = NOTHING
    """Former spellings of choices, and what replaces each ("" = nothing does)."""
    open_choices: bool = False
    """Other values than the choices are possible."""
    format: str = ""
    """The name of a check in `formats`."""
    example: str = ""
    """A TOML value."""
    model: "type[Table] | None" = None
    deprecated: str = ""


@dataclass(frozen=True)
class Dead:
    """A key that the format does not know, but that people write."""

    hint: str
    error: bool = False
    silent: bool = False
    """It belongs to another tool, which is no mistake."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """The base of every typed value: its fields carry their description as metadata."""

    DEAD: ClassVar[Mapping[str, Dead]] = NOTHING
    ALIASES: ClassVar[Mapping[str, str]] = NOTHING
    """Other spellings of keys."""


@functools.cache
def fields_of(model: type[Table]) -> Mapping[str, Field]:
    """Describe the keys of a table, in the order in which they are documented."""
    described = {}
    for each in dataclasses.fields(model):
        field: Field | None = each.metadata.get("toml")
        if field is not None:
            key = field.key or each.name
            described[key] = dataclasses.replace(field, key=key, attribute=each.name)
    return described


def text(doc: str, example: str = "", *, default: str = "", **more: Any) -> Any:
    """Describe a text."""
    shown = example or (f'"{more["choices"][0]}"' if more.get("choices") else "")
    return _describe(Shape.TEXT, doc, default=default, example=shown, **more)


def flag(doc: str, *, default: bool | None = False, **more: Any) -> Any:
    """Describe a switch; the default None means that the platform decides."""
    return _describe(
        Shape.FLAG, doc, default=default, example="false" if default else "true", **more
    )


def number(doc: str, example: str = "1", *, default: int | None = 0, **more: Any) -> Any:
    """Describe a whole number."""
    return _describe(Shape.NUMBER, doc, default=default, example=example, **more)


def anything(doc: str, example: str, **more: Any) -> Any:
    """Describe a value of any type that is kept as text; absent is None."""
    return _describe(Shape.ANY, doc, default=None, example=example, **more)


def texts(doc: str, example: str, **more: Any) -> Any:
    """Describe a list of texts."""
    return _describe(Shape.TEXTS, doc, default=(), example=example, **more)


def text_map(doc: str, example: str, *, shape: Shape = Shape.TEXT_MAP, **more: Any) -> Any:
    """Describe a map of texts; numbers, switches, lists and tables in it become text."""
    return _describe(shape, doc, default=NOTHING, example=example, **more)


def table(model: type[Table], doc: str, **more: Any) -> Any:
    """Describe a table; absent is None."""
    return _describe(Shape.TABLE, doc, default=None, model=model, **more)


def tables(model: type[Table], doc: str, **more: Any) -> Any:
    """Describe a list of tables."""
    return _describe(Shape.TABLES, doc, default=(), model=model, **more)


def table_map(model: type[Table], doc: str, **more: Any) -> Any:
    """Describe tables under names of the author's choice."""
    return _describe(Shape.TABLE_MAP, doc, default=NOTHING, model=model, **more)


REQUIRED: Final = Need.REQUIRED
WANTED: Final = Need.WANTED
NEW: Final = Since.NEW


def _describe(shape: Shape, doc: str, *, default: object, **more: Any) -> Any:
    described = Field(shape=shape, doc=doc, default=default, **more)
    metadata = {"toml": described}
    if isinstance(default, MappingProxyType):
        return dataclasses.field(default_factory=lambda: NOTHING, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)
