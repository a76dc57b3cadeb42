"""Wake-ups from other servers: PostgreSQL's NOTIFY, received on a connection of its own."""

import asyncio
import json

import psycopg
from sqlalchemy import make_url

from exclave.base.logs import Log
from exclave.storage.dialects.postgres_session import CHANNEL
from exclave.storage.hub import Hub

log = Log("listener")

_RECONNECT_S = 1.0


async def listen(url: str, hub: Hub, name: str) -> None:
    """Listen until cancelled; after any gap everybody is woken, since wake-ups may be missing."""
    target = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    while True:
        try:
            await _listen(target, hub, name)
        except psycopg.Error as error:
            log.warning("listener_disconnected", error=str(error).strip())
        await asyncio.sleep(_RECONNECT_S)


async def _listen(target: str, hub: Hub, name: str) -> None:
    opening = psycopg.AsyncConnection.connect(target, autocommit=True, connect_timeout=5)
    async with await opening as connection:
        await connection.execute(f"LISTEN {CHANNEL}")
        hub.wake_all()
        async for notice in connection.notifies():
            sender, *keys = json.loads(notice.payload)
            if sender != name:
                hub.wake(keys)
