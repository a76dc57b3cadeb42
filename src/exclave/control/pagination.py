"""Cursor pages: one row more than the limit is read, to know whether there is a next page."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from exclave.storage.engine.database import AnyRow
from exclave.wire.model import Page

Item = TypeVar("Item")

MOST = 200


def clamp(limit: int) -> int:
    """Return a page size within bounds."""
    return max(1, min(limit, MOST))


def make_page(rows: Sequence[AnyRow], limit: int, read: Callable[[AnyRow], Item]) -> Page[Any]:
    """Return a page of up to `limit + 1` rows; ids sort by time, so they serve as cursors."""
    items = [read(row) for row in rows[:limit]]
    following = str(rows[limit - 1].id) if len(rows) > limit else None
    return Page(items=items, next=following)
