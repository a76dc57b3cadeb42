"""Wake-ups from other servers: PostgreSQL's NOTIFY, received on a connection of its own."""

import json
import threading

import psycopg
from sqlalchemy import make_url

from exclave.base.logs import Log
from exclave.storage.dialects.postgres_session import CHANNEL
from exclave.storage.hub import Hub

log = Log("listener")

_LOOK_UP_S = 1.0
_RECONNECT_S = 1.0


class Listener:
    """A thread that listens; after any gap everybody is woken, since wake-ups may be missing."""

    def __init__(self, url: str, hub: Hub, name: str) -> None:
        self._conninfo = (
            make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        )
        self._hub = hub
        self._name = name
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="listener", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stopping.set()
        self._thread.join()

    def _work(self) -> None:
        while not self._stopping.is_set():
            try:
                self._listen()
            except psycopg.Error as error:
                log.warning("listener_disconnected", error=str(error).strip())
                self._stopping.wait(_RECONNECT_S)

    def _listen(self) -> None:
        with psycopg.connect(self._conninfo, autocommit=True, connect_timeout=5) as connection:
            connection.execute(f"LISTEN {CHANNEL}")
            self._hub.wake_all_soon()
            while not self._stopping.is_set():
                for notice in connection.notifies(timeout=_LOOK_UP_S):
                    sender, *keys = json.loads(notice.payload)
                    if sender != self._name:
                        self._hub.wake_soon(keys)
