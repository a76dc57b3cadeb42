"""A pool of open sessions, each used by one transaction at a time."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError

from exclave.storage.engine.dialects.base import Session


class Sessions:
    """The sessions for reading or for writing; any thread may use it."""

    def __init__(self, connect: Callable[[], Session]) -> None:
        self._connect = connect
        self._free: deque[Session] = deque()

    @contextmanager
    def begin(self, *, alone: bool = False) -> Iterator[Session]:
        """Yield a session in a new transaction; roll back what the block did not commit.

        With `alone`, for a single query, no transaction is begun.
        """
        session = self._begin(alone=alone)
        try:
            yield session
        finally:
            session.rollback()
            if session.lost:
                session.close()
            else:
                self._free.append(session)

    def close(self) -> None:
        """Close the sessions that are not in use."""
        while self._free:
            self._free.pop().close()

    def _begin(self, *, alone: bool) -> Session:
        """Begin on a session that still works: a restarted database has closed all connections."""
        while self._free:
            session = self._free.pop()
            try:
                session.begin(alone=alone)
            except DBAPIError:
                session.rollback()
                session.close()
            else:
                return session
        session = self._connect()
        try:
            session.begin(alone=alone)
        except DBAPIError:
            session.rollback()
            session.close()
            raise
        return session
