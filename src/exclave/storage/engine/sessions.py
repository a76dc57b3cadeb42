"""Connections that are kept open, each lent to one transaction at a time."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError

from exclave.storage.engine.dialects.base import Session


class Sessions:
    """All connections of one purpose; any thread may take one."""

    def __init__(self, connect: Callable[[], Session]) -> None:
        self._connect = connect
        self._free: deque[Session] = deque()

    @contextmanager
    def begin(self, *, alone: bool = False) -> Iterator[Session]:
        """Lend a session in a fresh transaction; what was not committed in the block is undone.

        A question that is asked `alone` needs no transaction.
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
        """Close what is not lent."""
        while self._free:
            self._free.pop().close()

    def _begin(self, *, alone: bool) -> Session:
        """Begin on a session that is still good: a database that restarted has hung up on all."""
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
