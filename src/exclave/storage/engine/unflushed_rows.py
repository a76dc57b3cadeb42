"""Rows that a transaction has yet to insert.

What changes them meanwhile is worked in, so that each is written once.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import Table

from exclave.storage.engine.dialects.bulk import Rows, list_defaults, list_keys

Row = dict[str, Any]


class Drafts:
    """The rows, by table and primary key, in the order in which they came."""

    def __init__(self) -> None:
        self._tables: dict[Table, dict[tuple[Any, ...], Row]] = {}

    def __bool__(self) -> bool:
        """Tell whether any row is yet to be inserted."""
        return bool(self._tables)

    def add(self, table: Table, rows: Rows) -> bool:
        """Take rows to insert; refuse all of them where one has the key of another."""
        found = {_find_key(table, row): dict(row) for row in rows}
        drafts = self._tables.get(table, {})
        if len(found) < len(rows) or not drafts.keys().isdisjoint(found):
            return False
        self._tables[table] = drafts | found
        return True

    def amend(self, table: Table, values: Mapping[str, Any], kept: tuple[str, ...] = ()) -> bool:
        """Change a row that is yet to be inserted; tell whether there is one."""
        row = self._tables.get(table, {}).get(_find_key(table, values))
        if row is None:
            return False
        row.update(
            (name, value) for name, value in values.items() if value is not None or name not in kept
        )
        return True

    def list(self, table: Table) -> list[Row]:
        """List the rows of a table that are yet to be inserted."""
        return list(self._tables.get(table, {}).values())

    def take(self) -> Iterator[tuple[Table, Rows]]:
        """Give the rows to insert, those of a table with the same columns, and have none left."""
        taken, self._tables = self._tables, {}
        for table, drafts in taken.items():
            yield table, _fill(table, list(drafts.values()))


def _find_key(table: Table, row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in list_keys(table))


def _fill(table: Table, rows: list[Row]) -> Rows:
    """Let all rows have the columns that some have."""
    names = dict.fromkeys(name for row in rows for name in row)
    if all(len(row) == len(names) for row in rows):
        return rows
    defaults = list_defaults(table)
    empty = {name: defaults.get(name) for name in names}
    return [{**empty, **row} for row in rows]
