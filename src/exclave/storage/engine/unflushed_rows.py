"""Rows that a transaction has inserted but not yet sent to the database."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

from sqlalchemy import Table

from exclave.storage.engine.dialects.bulk import Rows, list_defaults, list_keys
from exclave.storage.engine.statements import Values

Row = dict[str, Any]


class UnflushedRows:
    """The rows by table and primary key, in the order in which they were inserted.

    Why this exists: one transaction often inserts a row and updates it a moment later. A workflow
    is stored pending, begun, and its first job offered to a runner that waits, all in one commit.
    `Tx` keeps inserts here until it runs any other statement or commits, and an update by primary
    key that finds its row here changes it in place. So that transaction is one insert per table.
    Without it each of those rows is written twice, once by the insert and once by the update.

    What to know when writing a query: a violated constraint is raised at the flush, not at the
    insert; a query that must see new rows without a flush reads them with `Tx.list_unflushed`.
    """

    def __init__(self) -> None:
        self._tables: dict[Table, dict[tuple[Any, ...], Row]] = {}

    def __bool__(self) -> bool:
        """Return whether there is any row."""
        return bool(self._tables)

    def add(self, table: Table, rows: Rows) -> bool:
        """Add rows to insert; return False, and add none, if two have the same key.

        The caller then sends them, and the database says what is wrong with them.
        """
        keys = list_keys(table)
        added = {tuple([row.get(name) for name in keys]): dict(row) for row in rows}
        present = self._tables.get(table, {})
        if len(added) < len(rows) or not present.keys().isdisjoint(added):
            return False
        self._tables[table] = present | added
        return True

    def patch(self, table: Table, values: Values, keep_if_none: tuple[str, ...] = ()) -> bool:
        """Change the row with the key of these values; return whether there is one."""
        key = tuple([values.get(name) for name in list_keys(table)])
        row = self._tables.get(table, {}).get(key)
        if row is None:
            return False
        row.update(
            (name, value)
            for name, value in values.items()
            if value is not None or name not in keep_if_none
        )
        return True

    def list(self, table: Table) -> list[Row]:
        """List the rows of a table."""
        return list(self._tables.get(table, {}).values())

    def pop_all(self) -> Iterator[tuple[Table, Rows]]:
        """Remove all rows and yield them by table, those of a table with the same columns."""
        popped, self._tables = self._tables, {}
        for table, rows in popped.items():
            yield table, _fill(table, list(rows.values()))


def _fill(table: Table, rows: list[Row]) -> Rows:
    """Return the rows with the same columns, so that one insert writes them."""
    names = dict.fromkeys(chain.from_iterable(rows))
    if all(len(row) == len(names) for row in rows):
        return rows
    defaults = list_defaults(table)
    empty = {name: defaults.get(name) for name in names}
    return [{**empty, **row} for row in rows]
