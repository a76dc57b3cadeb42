"""The state backend on loopback: who may ask, and what Terraform understands as an answer."""

import asyncio
import base64
import hashlib
import json
from dataclasses import dataclass, field

import httpx
import pytest

from exclave.base.ids import SystemRandomness
from exclave.client.problems import RemoteProblem
from exclave.runner.terraform.state_backend import StateProxy
from exclave.wire.states import LockInfo


@dataclass
class Memory:
    """A backend that keeps a state in memory, and refuses on demand."""

    state: bytes | None = None
    locks: list[LockInfo] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    problem: Exception | None = None

    async def read(self) -> bytes | None:
        self._check()
        return self.state

    async def write(self, lock_id: str, data: bytes) -> None:
        self._check()
        self.writes.append(lock_id)
        self.state = data

    async def lock(self, lock: LockInfo) -> None:
        self._check()
        self.locks.append(lock)

    async def unlock(self, lock_id: str) -> None:
        self._check()
        self.locks = [one for one in self.locks if one.id != lock_id]

    def _check(self) -> None:
        if self.problem is not None:
            raise self.problem


def open_client(proxy: StateProxy, password: str | None = None) -> httpx.AsyncClient:
    env = proxy.env
    auth = (env["TF_HTTP_USERNAME"], password or env["TF_HTTP_PASSWORD"])
    return httpx.AsyncClient(auth=auth, trust_env=False)


LOCK = {"ID": "l-1", "Operation": "OperationTypeApply", "Who": "me", "Created": "now"}


async def test_a_state_goes_there_and_back_on_one_connection() -> None:
    backend = Memory()
    async with StateProxy(backend, SystemRandomness()) as proxy, open_client(proxy) as client:
        missing = await client.get(proxy.env["TF_HTTP_ADDRESS"])
        locked = await client.request("LOCK", proxy.env["TF_HTTP_ADDRESS"], json=LOCK)
        body = b'{"version": 4}'
        md5 = base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()
        written = await client.post(
            proxy.env["TF_HTTP_ADDRESS"] + "?ID=l-1", content=body, headers={"Content-MD5": md5}
        )
        read = await client.get(proxy.env["TF_HTTP_ADDRESS"])
        unlocked = await client.request("UNLOCK", proxy.env["TF_HTTP_ADDRESS"], json=LOCK)

    codes = [one.status_code for one in (missing, locked, written, read, unlocked)]
    assert codes == [404, 200, 200, 200, 200]
    assert (read.content, backend.writes, backend.locks) == (body, ["l-1"], [])


async def test_strangers_get_nothing() -> None:
    backend = Memory(state=b"secret")
    async with StateProxy(backend, SystemRandomness()) as proxy:
        async with open_client(proxy, "wrong") as client:
            wrong = await client.get(proxy.env["TF_HTTP_ADDRESS"])
        async with open_client(proxy) as client:
            elsewhere = await client.get(proxy.env["TF_HTTP_ADDRESS"][:-1])
            other_way = await client.delete(proxy.env["TF_HTTP_ADDRESS"])
        async with httpx.AsyncClient(trust_env=False) as client:
            nobody = await client.get(proxy.env["TF_HTTP_ADDRESS"])

    codes = [one.status_code for one in (wrong, elsewhere, other_way, nobody)]
    assert codes == [401, 403, 405, 401]
    assert all(b"secret" not in one.content for one in (wrong, elsewhere, other_way, nobody))


async def test_a_damaged_body_is_refused() -> None:
    backend = Memory()
    async with StateProxy(backend, SystemRandomness()) as proxy, open_client(proxy) as client:
        damaged = await client.post(
            proxy.env["TF_HTTP_ADDRESS"] + "?ID=l", content=b"{}", headers={"Content-MD5": "AAAA"}
        )
        no_json = await client.request("LOCK", proxy.env["TF_HTTP_ADDRESS"], content=b"rubbish")
        no_object = await client.request("LOCK", proxy.env["TF_HTTP_ADDRESS"], content=b"[]")

    codes = [reply.status_code for reply in (damaged, no_json, no_object)]
    assert codes == [400, 500, 500]
    assert no_object.content == b"the lock is not an object"
    assert backend.state is None


@pytest.mark.parametrize(
    ("code", "status"), [("lock_held", 423), ("superseded", 409), ("state_refused", 409)]
)
async def test_refusals_are_told_in_terraform_s_words(code: str, status: int) -> None:
    lock = {"id": "l-2", "who": "other", "operation": "x", "info": "", "created": "", "version": ""}
    problem = RemoteProblem(409, code, "no", facts={"lock": lock})
    backend = Memory(problem=problem)
    async with StateProxy(backend, SystemRandomness()) as proxy, open_client(proxy) as client:
        reply = await client.request("LOCK", proxy.env["TF_HTTP_ADDRESS"], json=LOCK)

    assert reply.status_code == status
    if status == 423:
        assert json.loads(reply.content) == {"ID": "l-2", "Who": "other", "Operation": "x"}


async def test_after_the_block_nobody_answers() -> None:
    async with StateProxy(Memory(), SystemRandomness()) as proxy:
        address = proxy.env["TF_HTTP_ADDRESS"]

    async with httpx.AsyncClient(trust_env=False) as client:
        with pytest.raises(httpx.ConnectError):
            await client.get(address)


async def test_two_proxies_share_no_secret() -> None:
    async with (
        StateProxy(Memory(), SystemRandomness()) as one,
        StateProxy(Memory(), SystemRandomness()) as other,
    ):
        assert not set(one.secrets) & set(other.secrets)
        assert all(len(secret) == 64 for secret in one.secrets)


async def ask_raw(address: str, head: bytes, body: bytes = b"") -> bytes:
    url = httpx.URL(address)
    reader, writer = await asyncio.open_connection(url.host, url.port)
    writer.write(head + body)
    try:
        return await asyncio.wait_for(reader.read(1000), 5)
    finally:
        writer.close()


async def test_a_stranger_is_refused_before_the_body_is_read() -> None:
    async with StateProxy(Memory(), SystemRandomness()) as proxy:
        head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 67108864\r\n\r\n"

        reply = await ask_raw(proxy.env["TF_HTTP_ADDRESS"], head)

    assert reply.startswith(b"HTTP/1.1 401 ")


async def test_a_stranger_that_says_nothing_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exclave.runner.jobs.loopback._HEAD_WITHIN_S", 0.05)
    async with StateProxy(Memory(), SystemRandomness()) as proxy:
        assert await ask_raw(proxy.env["TF_HTTP_ADDRESS"], b"GET / HTTP/1.1\r\nX: ") == b""


async def test_a_known_client_that_stops_in_mid_body_is_cut_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("exclave.runner.jobs.loopback._CHUNK_WITHIN_S", 0.05)
    backend = Memory()
    async with StateProxy(backend, SystemRandomness()) as proxy:
        both = f"{proxy.env['TF_HTTP_USERNAME']}:{proxy.env['TF_HTTP_PASSWORD']}".encode()
        head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nAuthorization: Basic "

        reply = await ask_raw(
            proxy.env["TF_HTTP_ADDRESS"], head + base64.b64encode(both) + b"\r\n\r\n", b"half"
        )

    assert (reply, backend.state) == (b"", None)


async def test_strangers_that_hold_connections_do_not_keep_terraform_out() -> None:
    backend = Memory(state=b"state")
    async with StateProxy(backend, SystemRandomness()) as proxy:
        url = httpx.URL(proxy.env["TF_HTTP_ADDRESS"])
        held = [await asyncio.open_connection(url.host, url.port) for _ in range(300)]
        async with open_client(proxy) as client:
            read = await client.get(url)
        living = sum(not reader.at_eof() and reader.exception() is None for reader, _ in held)
        for _, writer in held:
            writer.close()

    assert (read.content, living <= 64) == (b"state", True)


async def test_a_state_over_the_limit_is_refused_with_a_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("exclave.runner.terraform.state_backend.MAX_STATE", 1000)
    backend = Memory()
    async with StateProxy(backend, SystemRandomness()) as proxy, open_client(proxy) as client:
        reply = await client.post(proxy.env["TF_HTTP_ADDRESS"] + "?ID=l", content=b"x" * 500_000)
        again = await client.post(proxy.env["TF_HTTP_ADDRESS"] + "?ID=l", content=b"{}")

    assert (reply.status_code, reply.content) == (413, b"a state has at most 1000 bytes")
    assert (again.status_code, backend.state) == (200, b"{}")
