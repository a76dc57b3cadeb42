"""Usage and limits of an org."""

from exclave.wire.model import Reply


class UsageLine(Reply):
    """The usage of one kind; a limit of None means no limit."""

    kind: str
    bytes: int | None
    """None for kinds of which only the number is limited."""
    bytes_limit: int | None
    items: int
    items_limit: int | None


class UsageReply(Reply):
    """The usage of all kinds; what running jobs store is counted some seconds later."""

    kinds: list[UsageLine]
