"""Column types that mean the same in both databases."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Any, TypeVar

from pydantic_core import to_json
from sqlalchemy import JSON, BigInteger, Dialect, Text, TypeDecorator
from sqlalchemy.dialects.postgresql import JSONB

Json = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
"""A JSON document; None is no document, not the document `null`."""


def write_json(value: object) -> str:
    """Write a document: like the standard library, and in a sixth of its time."""
    try:
        return to_json(value, inf_nan_mode="constants").decode()
    except ValueError:  # half of a surrogate pair, which only an escape can carry
        return json.dumps(value)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Instant(TypeDecorator[datetime]):
    """A moment as microseconds since 1970 in UTC: exact, comparable, the same everywhere."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        """Write a moment."""
        del dialect
        return None if value is None else (value - _EPOCH) // _MICROSECOND

    def process_result_value(self, value: Any | None, dialect: Dialect) -> datetime | None:
        """Read a moment."""
        del dialect
        return None if value is None else _EPOCH + timedelta(microseconds=value)


E = TypeVar("E", bound=StrEnum)


class EnumText(TypeDecorator[E]):
    """A member of an enum, stored as its text; an unknown text raises ValueError when read."""

    impl = Text
    cache_ok = True

    def __init__(self, members: type[E]) -> None:
        super().__init__()
        self.members = members

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], E | None]:
        """Return the function that reads a member: one lookup, since every event reads many."""
        del dialect, coltype
        return _MembersByText(self.members).__getitem__


class _MembersByText(dict[str | None, E | None]):
    """The members of an enum by their texts; None stays None."""

    def __init__(self, members: type[E]) -> None:
        super().__init__({str(member): member for member in members})
        self[None] = None
        self._name = members.__name__

    def __missing__(self, text: str | None) -> E | None:
        raise ValueError(f"`{text}` is no {self._name}")


T = TypeVar("T")


class JsonAs(TypeDecorator[T]):
    """A JSON document that a function reads as a typed value; it is written as plain JSON."""

    impl = Json
    cache_ok = True

    def __init__(self, read: Callable[[Any], T]) -> None:
        super().__init__()
        self.read = read

    def process_result_value(self, value: Any | None, dialect: Dialect) -> T | None:
        """Read the document."""
        del dialect
        return None if value is None else self.read(value)


class IntegerList(TypeDecorator[tuple[int, ...]]):
    """A short list of numbers, stored as text with commas: quicker to read than JSON."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Sequence[int] | None, dialect: Dialect) -> str | None:
        """Write a list."""
        del dialect
        return None if value is None else ",".join(map(str, value))

    def process_result_value(self, value: str | None, dialect: Dialect) -> tuple[int, ...] | None:
        """Read a list."""
        del dialect
        return None if value is None else _split_integers(value)


class NameList(TypeDecorator[tuple[str, ...]]):
    """A short list of names without commas, stored as text with commas."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Sequence[str] | None, dialect: Dialect) -> str | None:
        """Write a list."""
        del dialect
        return None if value is None else ",".join(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> tuple[str, ...] | None:
        """Read a list."""
        del dialect
        return None if value is None else _split_names(value)


# Cached: each event of a workflow reads all its steps, and these few texts come again and again.
@lru_cache(1024)
def _split_integers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(","))) if text else ()


@lru_cache(1024)
def _split_names(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()
