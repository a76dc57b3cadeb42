"""Cursor pages: one row more than the limit is read, to know whether there is a next page."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from exclave.wire.model import Page


class Identified(Protocol):
    """A value with an id; ids sort by time, so they serve as cursors."""

    @property
    def id(self) -> str:
        """The id."""


Row = TypeVar("Row", bound=Identified)
Item = TypeVar("Item")

MOST = 200


def clamp(limit: int) -> int:
    """Return a page size within bounds."""
    return max(1, min(limit, MOST))


def make_page(rows: Sequence[Row], limit: int, read: Callable[[Row], Item]) -> Page[Item]:
    """Return a page of up to `limit + 1` rows."""
    items = [read(row) for row in rows[:limit]]
    following = rows[limit - 1].id if len(rows) > limit else None
    return Page(items=items, next=following)
