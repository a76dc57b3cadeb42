"""Uploads whose client or server dies in the middle go on where they were, at any server."""

import asyncio
import hashlib
import random
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from exclave.client.oci.client import OciClient
from exclave.client.retry import RetryPolicy
from tests.faults.site import Site, open_site, wait_until
from tests.support.databases import open_database

DATA = random.Random(8).randbytes(1 << 20) * 24
DIGEST = f"sha256:{hashlib.sha256(DATA).hexdigest()}"


@pytest.fixture(params=["sqlite", "two-servers"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    two = request.param == "two-servers"
    with (
        open_database("postgres" if two else "sqlite") as url,
        open_site(tmp_path, url if two else "", servers=2 if two else 1) as made,
    ):
        yield made


def make_token(site: Site) -> str:
    wish = {"repository": "*", "push": True, "minutes": 60}
    return str(site.post("/v1/registry/tokens", wish)["password"])


def tell_org(site: Site) -> str:
    return str(site.get("/v1/org")["id"])


def send_half(url: str, path: str, token: str, data: bytes, announced: int) -> socket.socket:
    """Begin a PATCH by hand, send some of its body, and leave the connection as it is."""
    parts = urlsplit(url)
    line = socket.create_connection((parts.hostname, parts.port))
    head = (
        f"PATCH {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Length: {announced}\r\n\r\n"
    )
    line.sendall(head.encode() + data)
    return line


def tell_size(client: httpx.Client, location: str) -> int:
    """Tell how much has arrived; 0 while nobody answers."""
    try:
        reply = client.get(location)
    except httpx.TransportError:
        return 0
    return int(reply.headers["Range"].partition("-")[2]) + 1 if reply.status_code == 204 else 0


def open_upload(site: Site, token: str) -> tuple[httpx.Client, str]:
    client = httpx.Client(
        base_url=site.balancers[1].url, headers={"Authorization": f"Bearer {token}"}, timeout=30
    )
    base = f"/v2/{tell_org(site)}/apps/demo"
    location = client.post(f"{base}/blobs/uploads/").headers["Location"]
    headers = {"Content-Range": f"0-{(4 << 20) - 1}"}
    assert client.patch(location, content=DATA[: 4 << 20], headers=headers).status_code == 202
    return client, location


def finish(client: httpx.Client, location: str, at: int) -> None:
    headers = {"Content-Range": f"{at}-{len(DATA) - 1}"}
    reply = client.patch(location, content=DATA[at:], headers=headers)
    assert reply.status_code == 202, reply.text
    assert client.put(f"{location}?digest={DIGEST}").status_code == 201
    blob = f"{location.partition('/blobs/')[0]}/blobs/{DIGEST}"
    assert client.get(blob).content == DATA


def test_a_client_that_dies_goes_on_with_what_had_arrived(site: Site) -> None:
    token = make_token(site)
    client, location = open_upload(site, token)
    rest = len(DATA) - (4 << 20)
    line = send_half(site.balancers[1].url, location, token, DATA[4 << 20 : 14 << 20], rest)
    line.close()

    arrived = wait_until(
        lambda: (size := tell_size(client, location)) > (4 << 20) and size, "more has arrived"
    )

    assert arrived <= 14 << 20
    finish(client, location, arrived)
    client.close()


def test_a_server_that_is_killed_loses_only_the_piece_under_way(site: Site) -> None:
    token = make_token(site)
    client, location = open_upload(site, token)
    rest = len(DATA) - (4 << 20)
    line = send_half(site.balancers[1].url, location, token, DATA[4 << 20 : 14 << 20], rest)
    for server in site.servers:
        server.kill9()
    line.close()
    for server in site.servers:
        server.start()
    site.wait_for_server()

    arrived = wait_until(lambda: tell_size(client, location), "the upload is still there")

    assert arrived == 4 << 20
    finish(client, location, arrived)
    client.close()


def test_our_client_gets_through_kills(site: Site, tmp_path: Path) -> None:
    token, org = make_token(site), tell_org(site)
    layer = tmp_path / "layer"
    layer.write_bytes(DATA)

    async def get_token() -> str:
        return token

    async def push_and_pull() -> bytes:
        policy = RetryPolicy(first_s=0.1, longest_s=1.0, give_up_s=60.0)
        url = f"{site.balancers[1].url}/{org}"
        async with OciClient(url, get_token, policy=policy) as client:
            made = await client.push_artifact(
                "apps/demo",
                artifact_type="application/x",
                layer=layer,
                layer_type="a/b",
                annotations={},
            )
            out = await client.pull_layer("apps/demo", made.digest, tmp_path / "out")
        return out.read_bytes()

    async def kill_now_and_then() -> None:
        chance = random.Random(9)
        while True:
            await asyncio.sleep(chance.uniform(0.05, 0.4))
            server = chance.choice(site.servers)
            await asyncio.to_thread(server.kill9)
            server.start()
            await asyncio.to_thread(site.wait_for_server)
            await asyncio.sleep(1.5)

    async def run() -> bytes:
        killer = asyncio.create_task(kill_now_and_then())
        try:
            return await push_and_pull()
        finally:
            killer.cancel()

    assert asyncio.run(run()) == DATA
