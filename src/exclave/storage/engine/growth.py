"""What transactions stored of kinds that are too busy to be counted in each of them.

Amounts are added up in memory once a transaction is committed, and written every few seconds: a
row per org that every result had to update would make the runners of an org wait for each other.
"""

from collections.abc import Mapping

from exclave.storage.usage_amounts import Account, Amount


class Growth:
    """Amounts that are committed but not yet counted."""

    def __init__(self) -> None:
        self._added: dict[Account, Amount] = {}

    def add(self, account: Account, amount: Amount) -> None:
        """Add an amount."""
        held = self._added.get(account, Amount())
        self._added[account] = Amount(held.bytes + amount.bytes, held.items + amount.items)

    def pop_all(self) -> Mapping[Account, Amount]:
        """Return all amounts and begin anew."""
        added, self._added = self._added, {}
        return added

    def put_back(self, amounts: Mapping[Account, Amount]) -> None:
        """Keep amounts that could not be written."""
        for account, amount in amounts.items():
            self.add(account, amount)
