"""Connections over real sockets: whoever sends half a request does not keep one for long."""

import asyncio
import contextlib
import resource
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import pytest
from starlette.types import Receive, Scope, Send

from exclave.main import acceptor
from exclave.main.connections import ConnectionLimits, raise_file_limit, share_connections
from exclave.main.http_server import HttpServer

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
AUTHORIZED = b"Authorization: Bearer x\r\n"
WITHIN_S = 20.0


@dataclass
class App:
    """Reads bodies, unless the path says otherwise."""

    bodies: list[bytes] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", scope["path"] != "/refused"
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message["body"]
            more = message["more_body"]
        self.bodies.append(body)
        if scope["path"] == "/slow":
            await asyncio.sleep(1.0)
        size = 8_000_000 if scope["path"] == "/large" else 2
        headers = [(b"content-length", str(size).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"o" * size})


@dataclass
class Site:
    """A server with short limits."""

    app: App
    port: int
    server: HttpServer
    opened: list[asyncio.StreamWriter] = field(default_factory=list)

    async def connect(self, data: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.opened.append(writer)
        writer.write(data)
        await writer.drain()
        return reader, writer

    def count(self) -> int:
        return self.server.count_connections()


@contextlib.asynccontextmanager
async def open_site(limits: ConnectionLimits) -> AsyncIterator[Site]:
    app = App()
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    server = HttpServer(app, limits, shutdown_s=1)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    await wait_until(lambda: server.started)
    site = Site(app, port, server)
    try:
        yield site
    finally:
        for writer in site.opened:
            writer.transport.abort()
        server.stop()
        await serving


async def wait_until(is_so: Callable[[], bool]) -> None:
    for _ in range(int(WITHIN_S * 100)):
        if is_so():
            return
        await asyncio.sleep(0.01)
    raise TimeoutError


async def read_all(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(WITHIN_S):
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""


SHORT = ConnectionLimits(100, head_s=0.2, gap_s=0.3, anonymous_s=0.4, drain_s=0.2, stall_s=0.3)


@pytest.mark.parametrize(
    "data",
    [b"", b"\r\n", b"GET / HTT", b"GET / HTTP/1.1\r\nHost: x\r\nX-a: "],
    ids=["nothing", "empty line", "half a line", "half a header"],
)
async def test_half_a_head_is_not_waited_for(data: bytes) -> None:
    async with open_site(SHORT) as site:
        reader, _ = await site.connect(data)

        assert (await read_all(reader)).startswith(b"HTTP/1.1 408 ")
        assert site.count() == 0


async def test_a_head_that_trickles_in_is_not_waited_for() -> None:
    async with open_site(SHORT) as site:
        reader, writer = await site.connect(b"GET / HTTP/1.1\r\nX: ")
        reading = asyncio.create_task(read_all(reader))
        while not reading.done():
            writer.write(b"a")
            await asyncio.sleep(0.05)

        assert reading.result().startswith(b"HTTP/1.1 408 ")


async def test_the_second_head_of_a_connection_has_a_time_limit_too() -> None:
    async with open_site(SHORT) as site:
        reader, writer = await site.connect(GET)
        await reader.readuntil(b"oo")
        writer.write(b"GET / HT")

        assert (await read_all(reader)).startswith(b"HTTP/1.1 408 ")


async def test_an_endless_head_is_refused() -> None:
    async with open_site(ConnectionLimits(100)) as site:
        reader, writer = await site.connect(b"GET / HTTP/1.1\r\nX: ")
        reading = asyncio.create_task(read_all(reader))
        with contextlib.suppress(ConnectionError):
            while not reading.done():
                writer.write(b"a" * 10_000)
                await asyncio.sleep(0.001)

        assert reading.result().startswith(b"HTTP/1.1 431 ") or reading.result() == b""
        assert site.app.bodies == []


async def test_a_body_that_stops_is_not_waited_for() -> None:
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n" + AUTHORIZED + b"\r\nab"
    async with open_site(SHORT) as site:
        reader, _ = await site.connect(head)

        assert (await read_all(reader)).startswith(b"HTTP/1.1 408 ")
        assert site.app.bodies == []


async def test_a_slow_body_of_a_known_caller_may_go_on() -> None:
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n" + AUTHORIZED + b"\r\n"
    async with open_site(SHORT) as site:
        reader, writer = await site.connect(head)
        for _ in range(10):
            await asyncio.sleep(0.1)
            writer.write(b"a")

        assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
        assert site.app.bodies == [b"a" * 10]


async def test_a_slow_body_of_nobody_may_not() -> None:
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"
    async with open_site(SHORT) as site:
        reader, writer = await site.connect(head)
        reading = asyncio.create_task(read_all(reader))
        while not reading.done():
            writer.write(b"a")
            await asyncio.sleep(0.05)

        assert reading.result().startswith(b"HTTP/1.1 408 ")


async def test_the_rest_of_a_refused_body_is_not_waited_for() -> None:
    head = b"POST /refused HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"
    async with open_site(SHORT) as site:
        reader, writer = await site.connect(head)
        reading = asyncio.create_task(read_all(reader))
        while not reading.done():
            writer.write(b"a")
            await asyncio.sleep(0.05)

        assert reading.result().startswith(b"HTTP/1.1 200 ")


async def test_a_request_that_takes_long_is_not_cut() -> None:
    async with open_site(SHORT) as site:
        reader, _ = await site.connect(GET.replace(b" / ", b" /slow "))

        assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")


async def test_a_client_that_reads_nothing_is_cut() -> None:
    async with open_site(SHORT) as site:
        _, writer = await site.connect(GET.replace(b" / ", b" /large "))
        writer.transport.pause_reading()  # type: ignore[attr-defined]

        await wait_until(lambda: site.count() == 0)


async def test_half_open_connections_make_room_for_others() -> None:
    async with open_site(ConnectionLimits(20)) as site:
        for _ in range(100):
            await site.connect(b"POST / HTTP/1.1\r\nX-a: ")

        reader, _ = await site.connect(GET)

        assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
        assert site.count() <= 20


async def test_answered_requests_whose_body_still_arrives_make_room_for_others() -> None:
    head = b"POST /refused HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"
    async with open_site(ConnectionLimits(5)) as site:
        for _ in range(5):
            reader, _ = await site.connect(head)
            await reader.readuntil(b"oo")

        reader, _ = await site.connect(GET)

        assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
        assert site.count() <= 5


async def test_requests_under_way_are_not_given_up_for_new_connections() -> None:
    async with open_site(ConnectionLimits(5)) as site:
        slow = [await site.connect(GET.replace(b" / ", b" /slow ")) for _ in range(5)]
        await wait_until(lambda: len(site.app.bodies) == 5)

        reader, _ = await site.connect(GET)

        assert (await read_all(reader)).startswith(b"HTTP/1.1 503 ")
        for each, _ in slow:
            assert (await each.readline()).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "data",
    [b"GET / HTTP/1.1\nHost: x\n\n", b"nonsense\r\n", b"GET / HTTP/9.9\r\n"],
    ids=["bare line feeds", "no request line", "unknown version"],
)
async def test_what_cannot_become_a_head_is_refused_at_once(data: bytes) -> None:
    async with open_site(ConnectionLimits(100)) as site:
        reader, _ = await site.connect(data)

        assert (await read_all(reader)).startswith(b"HTTP/1.1 400 ")


async def test_a_head_and_its_body_may_come_byte_by_byte() -> None:
    request = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
    async with open_site(ConnectionLimits(100)) as site:
        reader, writer = await site.connect(b"\r\n")
        for position in range(len(request)):
            writer.write(request[position : position + 1])
            await writer.drain()
            await asyncio.sleep(0)

        assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
        assert site.app.bodies == [b"abc"]


async def test_pipelined_requests_are_answered_in_order() -> None:
    async with open_site(ConnectionLimits(100)) as site:
        reader, _ = await site.connect(GET * 3)

        for _ in range(3):
            assert (await reader.readuntil(b"oo")).startswith(b"HTTP/1.1 200 ")


async def test_a_flood_of_connections_is_accepted_over_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(acceptor, "BURST", 4.0)
    monkeypatch.setattr(acceptor, "RATE", 200.0)
    async with open_site(ConnectionLimits(100)) as site:
        callers = [await site.connect(GET) for _ in range(40)]

        for reader, _ in callers:
            assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
        assert len(site.app.bodies) == 40


async def test_callers_without_a_request_end_with_the_server() -> None:
    async with open_site(ConnectionLimits(100)) as site:
        reader, _ = await site.connect(b"GET / HT")
        await wait_until(lambda: site.count() == 1)
        site.server.stop()

        assert await read_all(reader) == b""


def test_the_control_api_leaves_most_connections_to_runners() -> None:
    assert share_connections(1024) == (256, 512)
    assert share_connections(1 << 20, 300) == (100, 200)


def test_the_limit_of_open_files_is_raised_to_what_is_allowed() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = min(4096, before[1]) if before[1] != resource.RLIM_INFINITY else 4096
    resource.setrlimit(resource.RLIMIT_NOFILE, (most // 2, before[1]))
    try:
        assert raise_file_limit(most) == most
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (most, before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
