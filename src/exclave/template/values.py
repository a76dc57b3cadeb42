"""Go's view of values: their kind, truth and type name."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

from exclave.template.problems import Fault
from exclave.template.text import size

Value: TypeAlias = object
"""None, bool, int, float, str, list, dict, or one of the classes below; nothing else gets in."""


class Int64(int):
    """Go's int64, the result of arithmetic functions; a plain Python int is Go's int."""

    __slots__ = ()


class Byte(int):
    """Go's uint8, the result of indexing a string."""

    __slots__ = ()


class Uint64(int):
    """Go's uint64, used for the numbers of a version."""

    __slots__ = ()


class Strings(list[Value]):
    """Go's []string."""

    __slots__ = ()


class Ints(list[Value]):
    """Go's []int."""

    __slots__ = ()


class Lists(list[Value]):
    """Go's [][]interface {}."""

    __slots__ = ()


class StringMap(dict[str, Value]):
    """Go's map[string]string."""

    __slots__ = ()


class Time(datetime):
    """Go's time.Time; always aware, always UTC."""

    __slots__ = ()


class Version:
    """Go's *semver.Version: numbers, pre-release, metadata, and the text it came from."""

    __slots__ = ("fields", "original", "text")

    def __init__(self, fields: Mapping[str, Value], text: str, original: str) -> None:
        self.fields = fields
        self.text = text
        self.original = original


class Kind(StrEnum):
    """The kinds of values, by the names that Go gives them."""

    INVALID = "invalid"
    BOOL = "bool"
    INT = "int"
    INT64 = "int64"
    UINT8 = "uint8"
    UINT64 = "uint64"
    FLOAT = "float64"
    STRING = "string"
    SLICE = "slice"
    MAP = "map"
    STRUCT = "struct"
    POINTER = "ptr"


SIGNED = frozenset({Kind.INT, Kind.INT64})
UNSIGNED = frozenset({Kind.UINT8, Kind.UINT64})
INTEGERS = SIGNED | UNSIGNED

_KINDS: dict[type, Kind] = {
    type(None): Kind.INVALID,
    bool: Kind.BOOL,
    int: Kind.INT,
    Int64: Kind.INT64,
    Byte: Kind.UINT8,
    Uint64: Kind.UINT64,
    float: Kind.FLOAT,
    str: Kind.STRING,
    list: Kind.SLICE,
    Strings: Kind.SLICE,
    Ints: Kind.SLICE,
    Lists: Kind.SLICE,
    dict: Kind.MAP,
    StringMap: Kind.MAP,
    Time: Kind.STRUCT,
    Version: Kind.POINTER,
}

_TYPES: dict[type, str] = {
    type(None): "<nil>",
    bool: "bool",
    int: "int",
    Int64: "int64",
    Byte: "uint8",
    Uint64: "uint64",
    float: "float64",
    str: "string",
    list: "[]interface {}",
    Strings: "[]string",
    Ints: "[]int",
    Lists: "[][]interface {}",
    dict: "map[string]interface {}",
    StringMap: "map[string]string",
    Time: "time.Time",
    Version: "*semver.Version",
}


def kind_of(value: Value) -> Kind:
    """Return the kind of a value; raise if it is not data."""
    return _KINDS[_class_of(value)]


def type_of(value: Value) -> str:
    """Return the type as Go prints it."""
    return _TYPES[_class_of(value)]


def _class_of(value: Value) -> type:
    """Return the class that represents a value; a subclass of a plain type counts as that type."""
    kind = type(value)
    if kind in _KINDS:
        return kind
    for plain in (str, int, float, list, dict):
        if isinstance(value, plain):
            return plain
    raise Fault(f"a value of type {kind.__name__} is not data")


def is_true(value: Value) -> bool:
    """Return whether a value is true: not zero, not empty, not nil."""
    return kind_of(value) in (Kind.STRUCT, Kind.POINTER) or bool(value)


def is_empty(value: Value) -> bool:
    """Return whether sprig considers a value empty."""
    return not is_true(value)


def length(value: Value) -> int:
    """Return the number of elements, or of bytes of a string."""
    if isinstance(value, str):
        return size(value)
    if isinstance(value, list | dict):
        return len(value)
    raise Fault(f"len of type {type_of(value)}")


def check_int(number: int) -> int:
    """Return an integer; raise if it does not fit into 64 bits."""
    if not -(1 << 63) <= number < 1 << 64:
        raise Fault("a number does not fit into 64 bits")
    return int(number)


def wrap_int64(number: int) -> Int64:
    """Return an integer wrapped around as Go's int64 does."""
    return Int64((number + (1 << 63)) % (1 << 64) - (1 << 63))
