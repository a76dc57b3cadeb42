"""What an org uses, and what it may use."""

from exclave.wire.model import Reply


class UsageLine(Reply):
    """One kind of things. A limit of None is none."""

    kind: str
    bytes: int | None
    """None for kinds of which only the number is limited."""
    bytes_limit: int | None
    items: int
    items_limit: int | None


class UsageReply(Reply):
    """All kinds; what running work stores is counted some seconds later."""

    kinds: list[UsageLine]
