"""Connections that are kept open, each lent to one transaction at a time."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

from sqlalchemy.exc import DBAPIError

from exclave.storage.dialects.base import Session


class Sessions:
    """All connections of one purpose; any thread may take one."""

    def __init__(self, connect: Callable[[], Session]) -> None:
        self._connect = connect
        self._free: deque[Session] = deque()

    @contextmanager
    def begin(self) -> Iterator[tuple[Session, datetime | None]]:
        """Lend a session in a fresh transaction; what was not committed in the block is undone."""
        session, now = self._begin()
        try:
            yield session, now
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

    def _begin(self) -> tuple[Session, datetime | None]:
        """Begin on a session that is still good: a database that restarted has hung up on all."""
        while self._free:
            session = self._free.pop()
            try:
                return session, session.begin()
            except DBAPIError:
                session.rollback()
                session.close()
        session = self._connect()
        try:
            return session, session.begin()
        except DBAPIError:
            session.rollback()
            session.close()
            raise
