"""Field descriptions: one description of a key drives reading, checks, schema and docs."""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, ClassVar, Final, Never, TypeVar, dataclass_transform

T = TypeVar("T", bound="Table")

NOTHING: Final[Mapping[str, Never]] = MappingProxyType({})


class Shape(StrEnum):
    """The shape of a value in TOML."""

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
    """Its absence is a warning: the format requires it, but other tools accept its absence."""
    OPTIONAL = "optional"


class Since(StrEnum):
    """The generation of the format that introduced a key."""

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
    """Whether the value may name a file whose content replaces it."""
    path: bool = False
    """Whether the value is a path below the app directory; the file's content replaces it."""
    choices: tuple[str, ...] = ()
    old_choices: Mapping[str, str] = dataclasses.field(default_factory=lambda: NOTHING)
    """Former spellings of choices, and their replacements ("" = none)."""
    other_choices: Mapping[str, str] = dataclasses.field(default_factory=lambda: NOTHING)
    """Equivalent spellings."""
    format: str = ""
    """The name of a check in `formats`."""
    example: str = ""
    """A TOML value."""
    flatten: bool = False
    """Tables inside a map become dotted keys."""
    model: "type[Table] | None" = None
    deprecated: str = ""
    unless: tuple[str, str] | None = None
    """A sibling key, and the value of it that makes this key optional."""

    @property
    def is_strict(self) -> bool:
        """Whether only a string is accepted, because the exact spelling matters."""
        return bool(self.choices or self.format) or self.key in {"name", "type"}


@dataclass(frozen=True)
class Dead:
    """A key that is not part of the format, but that people write."""

    hint: str
    error: bool = False
    silent: bool = False
    """Whether it belongs to another tool, which is no mistake."""


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Table:
    """Base class of all typed values: frozen, keyword-only, each field with its description.

    Like a dataclass, but cheaper to define: 70 dataclasses cost a tenth of a second at start-up,
    because each is compiled from generated source.
    """

    DEAD: ClassVar[Mapping[str, Dead]] = NOTHING
    ALIASES: ClassVar[Mapping[str, str]] = NOTHING
    """Other spellings of keys."""
    FIELDS: ClassVar[Mapping[str, Field]] = NOTHING
    """The fields by their key, in the order in which they are documented."""

    def __init_subclass__(cls) -> None:
        fields = {key: field for base in reversed(cls.__mro__[1:]) for key, field in _own(base)}
        for name, value in list(vars(cls).items()):
            if isinstance(value, Field):
                field = dataclasses.replace(value, key=value.key or name, attribute=name)
                fields[field.key] = field
                setattr(cls, name, value.default)
        cls.FIELDS = dict(sorted(fields.items(), key=lambda item: _FIRST.get(item[0], 9)))

    def __init__(self, **values: object) -> None:
        known = {field.attribute for field in self.FIELDS.values()}
        if not known.issuperset(values):
            raise TypeError(f"{type(self).__name__} has no {sorted(set(values) - known)}")
        self.__dict__.update(values)

    def __setattr__(self, name: str, value: object) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(
            getattr(self, field.attribute) == getattr(other, field.attribute)
            for field in self.FIELDS.values()
        )

    __hash__ = None  # type: ignore[assignment] # values hold mappings

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({shown})"


def evolve(table: T, **changes: object) -> T:
    """Return a copy of a table with some attributes changed."""
    return type(table)(**(vars(table) | changes))


def _own(base: type) -> Iterable[tuple[str, Field]]:
    fields: Mapping[str, Field] = vars(base).get("FIELDS", NOTHING)
    return fields.items()


_FIRST: Final = {"type": 0, "version": 0, "name": 1}


def text(doc: str, example: str = "", *, default: str = "", **more: Any) -> Any:
    """Describe a string."""
    shown = example or (f'"{more["choices"][0]}"' if more.get("choices") else "")
    return _describe(Shape.TEXT, doc, default=default, example=shown, **more)


def flag(doc: str, *, default: bool | None = False, **more: Any) -> Any:
    """Describe a boolean; with the default None the platform decides."""
    return _describe(
        Shape.FLAG, doc, default=default, example="false" if default else "true", **more
    )


def number(doc: str, example: str = "1", *, default: int | None = 0, **more: Any) -> Any:
    """Describe an integer."""
    return _describe(Shape.NUMBER, doc, default=default, example=example, **more)


def anything(doc: str, example: str, **more: Any) -> Any:
    """Describe a value of any type that is stored as a string; absent is None."""
    return _describe(Shape.ANY, doc, default=None, example=example, **more)


def texts(doc: str, example: str, **more: Any) -> Any:
    """Describe a list of strings."""
    return _describe(Shape.TEXTS, doc, default=(), example=example, **more)


def text_map(doc: str, example: str, *, shape: Shape = Shape.TEXT_MAP, **more: Any) -> Any:
    """Describe a map of strings; numbers, booleans, lists and tables in it become strings."""
    return _describe(shape, doc, default=NOTHING, example=example, **more)


def table(model: type[Table], doc: str, **more: Any) -> Any:
    """Describe a table; absent is None."""
    return _describe(Shape.TABLE, doc, default=None, model=model, **more)


def tables(model: type[Table], doc: str, **more: Any) -> Any:
    """Describe a list of tables."""
    return _describe(Shape.TABLES, doc, default=(), model=model, **more)


def table_map(model: type[Table], doc: str, **more: Any) -> Any:
    """Describe a map of tables with arbitrary names."""
    return _describe(Shape.TABLE_MAP, doc, default=NOTHING, model=model, **more)


REQUIRED: Final = Need.REQUIRED
WANTED: Final = Need.WANTED
NEW: Final = Since.NEW


def _describe(shape: Shape, doc: str, *, default: object, **more: Any) -> Any:
    return Field(shape=shape, doc=doc, default=default, **more)
