"""Probes go where a vendor says, but never to a metadata server of the customer's cloud."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from exclave.client.reach import Reach
from exclave.runner.kube.health.probes import run_probe
from exclave.wire.kubernetes import HealthProbe

METADATA = "169.254.169.254"


async def run_nothing(namespace: str, pod: str, command: Sequence[str]) -> str:
    raise AssertionError((namespace, pod, command))


async def resolve_to_metadata(host: str, port: int) -> Sequence[str]:
    del host, port
    return ["127.0.0.1", METADATA]


async def probe(kind: str, url: str, reach: Reach | None = None) -> str:
    made = HealthProbe.model_validate({"name": "p", "type": kind, "url": url})
    return await run_probe(made, None, run_nothing, reach or Reach())


@pytest.fixture
async def server() -> AsyncIterator[tuple[int, list[bytes]]]:
    """Return a port that redirects to the metadata server, and the requests that came."""
    seen: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.read(1 << 16))
        head = f"HTTP/1.1 302 Found\r\nLocation: http://{METADATA}/latest\r\n"
        writer.write(f"{head}Content-Length: 0\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    listening = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with listening:
        yield listening.sockets[0].getsockname()[1], seen


@pytest.mark.parametrize(
    ("kind", "url"),
    [
        ("http", f"http://{METADATA}/latest/meta-data"),
        ("http", "http://2852039166/"),
        ("http", "http://[fe80::1]/"),
        ("http", "http://[::ffff:169.254.169.254]/"),
        ("http", "http://168.63.129.16/"),
        ("tcp", f"tcp://{METADATA}:80"),
        ("tcp", "[fd00:ec2::254]:80"),
    ],
)
async def test_a_metadata_server_is_refused_in_each_spelling(kind: str, url: str) -> None:
    assert "where a machine asks its cloud for credentials" in await probe(kind, url)


@pytest.mark.parametrize(("kind", "scheme"), [("http", "http"), ("tcp", "tcp")])
async def test_a_name_that_also_has_a_metadata_address_is_not_connected_to(
    kind: str, scheme: str, server: tuple[int, list[bytes]]
) -> None:
    port, seen = server

    told = await probe(kind, f"{scheme}://app:{port}", Reach(resolve=resolve_to_metadata))

    assert f"has the address {METADATA}" in told
    assert seen == []


async def test_a_redirect_is_an_answer_and_is_not_followed(
    server: tuple[int, list[bytes]],
) -> None:
    port, seen = server

    assert await probe("http", f"http://127.0.0.1:{port}/") == ""
    assert len(seen) == 1


async def test_the_next_address_of_a_name_is_tried(server: tuple[int, list[bytes]]) -> None:
    port, _ = server

    async def resolve(host: str, port: int) -> Sequence[str]:
        del host, port
        return ["127.0.0.2", "127.0.0.1"]

    assert await probe("http", f"http://app:{port}/", Reach(resolve=resolve)) == ""
    assert await probe("tcp", f"tcp://app:{port}", Reach(resolve=resolve)) == ""


async def test_a_name_that_is_not_known_is_said() -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        raise OSError(f"{host}:{port} is not known")

    told = await probe("http", "http://app:1/", Reach(resolve=resolve))

    assert told == "GET http://app:1/: app:1 is not known"
