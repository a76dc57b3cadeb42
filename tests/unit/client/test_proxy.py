"""Through a proxy, to a server whose certificate is signed by the customer's own CA."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from exclave.client.problems import Unreachable
from exclave.client.runner import HttpRunnerApi
from exclave.client.transport import Link
from tests.faults.balancer import copy_all
from tests.support.certificates import make_certificate

KEYS = b'{"keys":[]}'


class Proxy:
    """A CONNECT proxy that remembers where it was asked to go."""

    def __init__(self, *, refuses: bool = False) -> None:
        self.asked: list[str] = []
        self._refuses = refuses

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.asked.append(head.split("\r\n", 1)[0])
        if self._refuses:
            writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
            writer.close()
            return
        host, port = head.split()[1].rsplit(":", 1)
        far_reader, far_writer = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(copy_all(reader, far_writer), copy_all(far_reader, writer))


async def answer_keys(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(KEYS)}"
    writer.write(head.encode() + b"\r\nConnection: close\r\n\r\n" + KEYS)
    await writer.drain()
    writer.close()


@asynccontextmanager
async def open_site(folder: Path, proxy: Proxy) -> AsyncIterator[tuple[str, str, Path]]:
    bundle, tls = make_certificate(folder)
    server = await asyncio.start_server(answer_keys, "127.0.0.1", 0, ssl=tls)
    between = await asyncio.start_server(proxy.handle, "127.0.0.1", 0)
    async with server, between:
        far = server.sockets[0].getsockname()[1]
        near = between.sockets[0].getsockname()[1]
        yield f"https://127.0.0.1:{far}", f"http://127.0.0.1:{near}", bundle


async def test_a_runner_reaches_its_server_through_a_proxy_with_a_private_ca(
    tmp_path: Path,
) -> None:
    proxy = Proxy()
    async with open_site(tmp_path, proxy) as (url, near, bundle):
        api = HttpRunnerApi(Link(url, proxy=near, ca_bundle=bundle))

        assert (await api.get_keys()).keys == []

        await api.close()
    assert proxy.asked == [f"CONNECT {url.removeprefix('https://')} HTTP/1.1"]


async def test_a_proxy_that_refuses_is_named(tmp_path: Path) -> None:
    async with open_site(tmp_path, Proxy(refuses=True)) as (url, near, bundle):
        api = HttpRunnerApi(Link(url, proxy=near, ca_bundle=bundle))

        with pytest.raises(Unreachable) as refused:
            await api.get_keys()

        await api.close()
    assert refused.value.facts["cause"] == "proxy"


async def test_without_the_bundle_the_certificate_is_named(tmp_path: Path) -> None:
    async with open_site(tmp_path, Proxy()) as (url, near, _):
        api = HttpRunnerApi(Link(url, proxy=near))

        with pytest.raises(Unreachable) as refused:
            await api.get_keys()

        await api.close()
    assert refused.value.facts["cause"] == "tls"
