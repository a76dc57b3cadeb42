"""Inserts and updates of many rows at once: what both databases share.

SQLAlchemy prepares each row of an `executemany` separately, which costs more than writing it. These
statements are made once per table and set of columns; values go to the driver as its types say.
Columns are named by plain texts: SQLAlchemy's own kind of them takes long to write as JSON.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import JSON, Dialect, Table
from sqlalchemy.sql.schema import ScalarElementColumnDefault

from exclave.storage.engine.statements import Values

Rows = Sequence[Values]
"""Rows of the same columns."""


@lru_cache
def list_defaults(table: Table) -> Values:
    """Return what an insert writes into columns that it does not name."""
    return {
        str(column.name): column.default.arg
        for column in table.c
        if isinstance(column.default, ScalarElementColumnDefault)
    }


@lru_cache
def find_converters(
    table: Table, names: tuple[str, ...], dialect: Dialect, *, keep_json: bool = False
) -> dict[str, Callable[[Any], Any]]:
    """Return converters for the columns whose values the driver does not accept as they are."""
    converters: dict[str, Callable[[Any], Any]] = {}
    for name in names:
        kind = table.c[name].type.dialect_impl(dialect)
        convert = kind.bind_processor(dialect)
        stored = getattr(kind, "impl_instance", kind)  # what a decorated type is stored as
        if convert is not None and not (keep_json and isinstance(stored, JSON)):
            converters[name] = convert
    return converters


@lru_cache
def list_keys(table: Table) -> tuple[str, ...]:
    """Return the names of the primary key's columns."""
    return tuple(str(column.name) for column in table.primary_key)


def quote_all(names: Iterable[str], dialect: Dialect, before: str = "") -> list[str]:
    """Return names as quoted identifiers."""
    return [before + dialect.identifier_preparer.quote(name) for name in names]


def write_assignment(column: str, value: str, old: str, *, keep_if_none: bool) -> str:
    """Return an assignment that, with `keep_if_none`, ignores a value that is null."""
    return f"{column} = coalesce({value}, {old})" if keep_if_none else f"{column} = {value}"
