"""Limit how many connections the requests of one org occupy, so that other orgs can connect.

Why this exists: a request occupies its connection from its head to the end of its reply, and the
client decides how long that takes: a body may arrive byte by byte, a stream has no end, a poll is
parked. Without a limit one org, or a single runner of it, holds all connections of a server. New
ones are then refused to everybody, and executions whose runners cannot renew are ended as lost.
"""

from exclave.control.runtime.request_slots import Busy

_PARTS = 8
_USUAL = 6
"""So many eighths of the connections may be held by the requests of one org."""
_VITAL = 7
"""The same with requests that keep executions alive: polls must not crowd out renewals."""


class HeldRequests:
    """The requests of one API that are being received, processed or answered, by org."""

    def __init__(self, connections: int = 0) -> None:
        """Share so many connections between orgs; 0 means that they are unlimited."""
        self.connections = connections
        self._counts: dict[str, int] = {}

    def enter(self, org: str, *, is_vital: bool = False) -> None:
        """Count a request until `leave`; `Busy` if the org holds its share of connections already.

        A refused request counts too: it occupies its connection until it is answered.
        """
        count = self._counts.get(org, 0) + 1
        self._counts[org] = count
        most = self.connections * (_VITAL if is_vital else _USUAL) // _PARTS
        if self.connections and count > max(1, most):
            message = f"{count - 1} requests of this org are under way already"
            raise Busy(message, retry_after_s=1)

    def leave(self, org: str) -> None:
        """Stop counting a request."""
        count = self._counts[org] - 1
        if count:
            self._counts[org] = count
        else:
            del self._counts[org]

    def count(self, org: str) -> int:
        """Return how many requests of an org are under way."""
        return self._counts.get(org, 0)
