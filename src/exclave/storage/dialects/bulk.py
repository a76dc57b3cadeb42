"""Many rows in one go: what the statements of both databases are made of.

SQLAlchemy prepares each row of an `executemany` by itself, which costs more than writing it. These
statements are made once per table and set of columns; values go to the driver as its types say.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import JSON, Dialect, Table
from sqlalchemy.sql.schema import ScalarElementColumnDefault
from sqlalchemy.types import TypeEngine

Rows = Sequence[Mapping[str, Any]]
"""Rows of the same columns."""


@lru_cache
def list_defaults(table: Table) -> dict[str, Any]:
    """Tell what an insert writes into columns that it does not name."""
    return {
        column.name: column.default.arg
        for column in table.c
        if isinstance(column.default, ScalarElementColumnDefault)
    }


@lru_cache
def find_converters(
    table: Table, names: tuple[str, ...], dialect: Dialect, *, keep_json: bool = False
) -> tuple[tuple[str, Callable[[Any], Any]], ...]:
    """Find how the values of each column are handed to the driver."""
    kinds = ((name, table.c[name].type.dialect_impl(dialect)) for name in names)
    return tuple(
        (name, _as_is if keep_json and isinstance(kind, JSON) else _find_converter(kind, dialect))
        for name, kind in kinds
    )


def _find_converter(kind: TypeEngine[Any], dialect: Dialect) -> Callable[[Any], Any]:
    return kind.bind_processor(dialect) or _as_is


def list_keys(table: Table) -> tuple[str, ...]:
    """Tell the columns by which a row is found."""
    return tuple(column.name for column in table.primary_key)


def quote_all(names: Iterable[str], dialect: Dialect, before: str = "") -> list[str]:
    """Write names as identifiers."""
    return [before + dialect.identifier_preparer.quote(name) for name in names]


def write_assignment(column: str, value: str, old: str, *, kept: bool) -> str:
    """Write an assignment; a kept column stays as it is where the new value is null."""
    return f"{column} = coalesce({value}, {old})" if kept else f"{column} = {value}"


def _as_is(value: Any) -> Any:
    return value
