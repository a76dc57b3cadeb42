"""No request gets to an address out of reach: not by a redirect, a new name, or a proxy."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence

import httpx
import pytest

from exclave.client.oci.client import OciClient
from exclave.client.reach import AddressRefused, Reach
from exclave.client.transport import Link, build_tls, open_transport

METADATA = "169.254.169.254"
DIGEST = f"sha256:{0:064x}"


@pytest.fixture
async def port() -> AsyncIterator[int]:
    """Return the port of a registry that redirects all to a metadata server."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 307 Moved\r\nLocation: http://{METADATA}/\r\n"
        writer.write(f"{head}Content-Length: 0\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    listening = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with listening:
        yield listening.sockets[0].getsockname()[1]


def open_registry(link: Link, reach: Reach) -> OciClient:
    transport = open_transport(link, build_tls(link), 2, reach=reach)
    return OciClient(link.url, transport=transport)


async def test_a_redirect_of_a_registry_is_not_followed_there(port: int) -> None:
    async with open_registry(Link(f"http://127.0.0.1:{port}"), Reach()) as client:
        with pytest.raises(AddressRefused, match=METADATA):
            await client.get_manifest("app", DIGEST)


async def test_a_name_that_changes_between_two_requests_is_refused(port: int) -> None:
    """Each connection resolves the name itself, and goes to what it has checked."""
    answers = iter((["127.0.0.1"], [METADATA]))

    async def resolve(host: str, port: int) -> Sequence[str]:
        del host, port
        return next(answers)

    link = Link(f"http://registry.example:{port}")
    transport = open_transport(link, build_tls(link), 2, reach=Reach(resolve=resolve))
    async with httpx.AsyncClient(transport=transport) as client:
        first = await client.get(link.url)
        with pytest.raises(AddressRefused, match=METADATA):
            await client.get(link.url)

    assert first.status_code == httpx.codes.TEMPORARY_REDIRECT


async def test_private_addresses_are_refused_where_they_are_not_allowed(port: int) -> None:
    async with open_registry(Link(f"http://localhost:{port}"), Reach(allow_private=False)) as made:
        with pytest.raises(AddressRefused, match="private address"):
            await made.get_manifest("app", DIGEST)


@pytest.mark.parametrize("host", [METADATA, "2852039166", "metadata.google.internal"])
async def test_a_proxy_is_not_asked_for_a_metadata_server(host: str) -> None:
    link = Link(f"http://{host}", proxy="http://127.0.0.1:9")
    transport = open_transport(link, ssl.create_default_context(), 2, reach=Reach())

    async with httpx.AsyncClient(transport=transport) as client:
        with pytest.raises(AddressRefused, match="metadata server"):
            await client.get(link.url)
