"""Walking over pages by their cursors."""

from collections.abc import AsyncIterator, Awaitable
from typing import Protocol, TypeVar

from exclave.wire.model import Page

Item = TypeVar("Item")

MAX_PAGE = 200
"""Most items that the server puts into one page."""


class FetchPage(Protocol[Item]):
    """Reads one page of a list."""

    def __call__(self, cursor: str | None, limit: int, /) -> Awaitable[Page[Item]]:
        """Read at most `limit` items from the cursor on."""
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
    """Gather up to `limit` items from as many pages as it takes, as one page."""
    items: list[Item] = []
    while True:
        page = await fetch(cursor, min(MAX_PAGE, limit - len(items)))
        items += page.items
        cursor = page.next
        if cursor is None or len(items) >= limit:
            return page.model_copy(update={"items": items})
