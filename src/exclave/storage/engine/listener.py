"""Wake-ups from other servers: PostgreSQL's NOTIFY, received on a connection of its own."""

import asyncio
import json

import psycopg
from psycopg import pq
from sqlalchemy import make_url

from exclave.base.logs import Log
from exclave.storage.engine.dialects.postgres_session import CHANNEL
from exclave.storage.engine.hub import Hub

log = Log("listener")

_RECONNECT_S = 1.0


async def listen(url: str, hub: Hub, name: str) -> None:
    """Listen until cancelled; wake all watchers after a gap, since wake-ups may be missing."""
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
        await _pass_on(connection.pgconn, hub, name)


async def _pass_on(line: pq.abc.PGconn, hub: Hub, name: str) -> None:
    """Pass notifications to the hub until the connection is lost."""
    loop = asyncio.get_running_loop()
    lost: asyncio.Future[None] = loop.create_future()
    descriptor = line.socket

    def read() -> None:
        try:
            line.consume_input()
        except psycopg.Error as error:
            if not lost.done():
                lost.set_exception(error)
            return
        while notice := line.notifies():
            sender, *keys = json.loads(notice.extra)
            if sender != name:
                hub.receive(keys)

    read()  # what came with the answer to LISTEN
    loop.add_reader(descriptor, read)
    try:
        await lost
    finally:
        loop.remove_reader(descriptor)
