"""Iteration over the pages of a list."""

from collections.abc import AsyncIterator, Awaitable
from typing import Protocol, TypeVar

from exclave.wire.model import Page

Item = TypeVar("Item")

MAX_PAGE = 200
"""Maximum number of items in one page of the server."""


class FetchPage(Protocol[Item]):
    """A function that returns one page of a list."""

    def __call__(self, cursor: str | None, limit: int, /) -> Awaitable[Page[Item]]:
        """Return at most `limit` items, starting at the cursor."""
        ...


async def iterate(fetch: FetchPage[Item]) -> AsyncIterator[Item]:
    """Yield all items of all pages."""
    cursor: str | None = None
    while True:
        page = await fetch(cursor, MAX_PAGE)
        for item in page.items:
            yield item
        if page.next is None:
            return
        cursor = page.next


async def collect(fetch: FetchPage[Item], *, limit: int, cursor: str | None = None) -> Page[Item]:
    """Return up to `limit` items of as many pages as needed, as one page."""
    items: list[Item] = []
    while True:
        page = await fetch(cursor, min(MAX_PAGE, limit - len(items)))
        items += page.items
        cursor = page.next
        if cursor is None or len(items) >= limit:
            return page.model_copy(update={"items": items})
