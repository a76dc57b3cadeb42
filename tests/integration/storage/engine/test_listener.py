"""Wake-ups cross servers through PostgreSQL, and a gap wakes everybody."""

import asyncio

from exclave.base.clock import SystemClock
from exclave.storage.engine.database import Database
from exclave.storage.engine.dialects import choose_dialect
from exclave.storage.engine.hub import Hub
from exclave.storage.engine.listener import listen
from tests.support.databases import get_postgres, open_database

Server = tuple[Database, "asyncio.Task[None]"]


def open_server(url: str, name: str) -> Server:
    hub = Hub()
    hub.attach(asyncio.get_running_loop())
    db = Database(choose_dialect(url), SystemClock(), hub, name=name)
    return db, asyncio.create_task(listen(url, hub, name))


async def close(*servers: Server) -> None:
    for db, listening in servers:
        db.hub.close()
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
        await asyncio.to_thread(db.close)


async def test_a_commit_on_one_server_wakes_a_waiter_on_the_other() -> None:
    with open_database("postgres") as url:
        one, two = open_server(url, "one"), open_server(url, "two")
        with two[0].hub.watch("queue:x") as watch:
            await watch.wait(0.5)  # the listener's own start wakes everybody once

            await one[0].write(lambda tx: tx.wake("queue:x"))

            assert await watch.wait(5)
        await close(one, two)


async def test_many_keys_fit_into_several_notifications() -> None:
    keys = [f"queue:{number:0100d}" for number in range(200)]
    with open_database("postgres") as url:
        one, two = open_server(url, "one"), open_server(url, "two")
        with two[0].hub.watch(keys[0]) as first, two[0].hub.watch(keys[-1]) as last:
            await first.wait(0.5)
            await last.wait(0.5)

            await one[0].write(lambda tx: tx.wake(*keys))

            assert await first.wait(5)
            assert await last.wait(5)
        await close(one, two)


async def test_a_listener_that_lost_its_connection_wakes_everybody_when_it_is_back() -> None:
    with open_database("postgres") as url:
        one = open_server(url, "one")
        with one[0].hub.watch("anything") as watch:
            await watch.wait(0.5)

            await asyncio.to_thread(get_postgres().restart)

            assert await watch.wait(20)
        await close(one)


async def meet(*servers: Server) -> None:
    while not all(db.hub.has_peers() for db, _ in servers):
        for db, _ in servers:
            await db.write(lambda tx: tx.wake("peers"))
        await asyncio.sleep(0.01)


async def test_what_people_watch_is_told_to_other_servers_a_moment_later_and_together() -> None:
    with open_database("postgres") as url:
        one, two = open_server(url, "one"), open_server(url, "two")
        await meet(one, two)
        heard: list[list[str]] = []
        two[0].hub.receive = lambda keys: heard.append(list(keys))  # type: ignore[method-assign]

        for number in range(5):
            await one[0].write(lambda tx, n=number: tx.wake(f"job:{n}", f"queue:{n}"))  # type: ignore[misc]
        async with asyncio.timeout(5):
            while "job:4" not in [key for keys in heard for key in keys]:  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.01)

        news = [keys for keys in heard if any(key.startswith("job:") for key in keys)]
        assert len(news) < 5
        assert [f"queue:{number}" in str(heard) for number in range(5)] == [True] * 5
        await close(one, two)


async def test_a_server_alone_tells_nobody_what_people_watch() -> None:
    with open_database("postgres") as url:
        one = open_server(url, "one")
        sent: list[tuple[str, ...]] = []

        async def send(keys: tuple[str, ...]) -> None:
            sent.append(keys)

        one[0]._batched._send = send
        with one[0].hub.watch("workflow:x") as watch:
            await watch.wait(0.5)

            await one[0].write(lambda tx: tx.wake("workflow:x"))

            assert await watch.wait(5)
        await asyncio.sleep(0.1)
        assert sent == []
        await close(one)


async def test_servers_forget_each_other_after_some_rounds_of_silence() -> None:
    with open_database("postgres") as url:
        one, two = open_server(url, "one"), open_server(url, "two")
        await meet(one, two)
        await close(two)

        for _ in range(4):
            assert one[0].hub.has_peers()
            one[0].hub.note_round()

        assert not one[0].hub.has_peers()
        await close(one)
