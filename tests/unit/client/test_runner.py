import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from exclave.base.clock import SystemClock
from exclave.base.errors import Kind
from exclave.base.ids import SeededRandomness
from exclave.client.problems import ProxyTooLarge, RemoteProblem, UnexpectedReply, Unreachable
from exclave.client.retry import RetryPolicy, is_passing, read_retry_after, retry
from exclave.client.runner import Deadlines, HttpRunnerApi
from exclave.client.transport import Link
from exclave.wire.runner import PROTOCOL, AskNonce, Renew
from tests.support.virtual_time import VirtualClock, run_virtual

Answer = Callable[[bytes], Awaitable[bytes]]
RUNNER = "run_" + "0" * 26


def build_reply(status: int, body: object, *headers: str) -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(data)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + data


@asynccontextmanager
async def serve(answer: Answer) -> AsyncIterator[str]:
    handlers: list[asyncio.Task[None]] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            sizes = [
                one for one in head.split(b"\r\n") if one.lower().startswith(b"content-length")
            ]
            body = await reader.readexactly(int(sizes[0].split(b":")[1]) if sizes else 0)
            writer.write(await answer(head + body))
        finally:
            writer.close()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handlers.append(asyncio.create_task(handle(reader, writer)))

    server = await asyncio.start_server(begin, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        for handler in handlers:
            handler.cancel()
        await asyncio.gather(*handlers, return_exceptions=True)


@asynccontextmanager
async def connect(url: str, **more: float) -> AsyncIterator[HttpRunnerApi]:
    api = HttpRunnerApi(Link(url), deadlines=Deadlines(**more))
    try:
        yield api
    finally:
        await api.close()


async def test_every_request_names_program_protocol_and_token() -> None:
    seen: list[bytes] = []

    async def answer(request: bytes) -> bytes:
        seen.append(request)
        return build_reply(200, {"next_offset": 9})

    async with serve(answer) as url, connect(url) as api:
        reply = await api.append_log("xcr_t", "exe_1", offset=4, epoch=7, frame=b"\x28\xb5")

    assert reply.next_offset == 9
    assert seen[0].startswith(b"POST /v1/executions/exe_1/log?offset=4&epoch=7 HTTP/1.1")
    head = seen[0].lower()
    for part in (
        b"authorization: bearer xcr_t",
        b"user-agent: exclave-runner/",
        b"application/zstd",
    ):
        assert part in head
    assert f"exclave-protocol: {PROTOCOL}".encode() in head
    assert seen[0].endswith(b"\x28\xb5")


async def test_a_problem_keeps_its_code_hint_facts_and_pause() -> None:
    async def answer(_: bytes) -> bytes:
        problem = {
            "title": "Conflict",
            "status": 409,
            "code": "log_offset",
            "detail": "elsewhere",
            "hint": "Seek.",
            "next_offset": 12,
        }
        return build_reply(409, problem, "Retry-After: 7", "Content-Type: application/problem+json")

    async with serve(answer) as url, connect(url) as api:
        with pytest.raises(RemoteProblem) as caught:
            await api.get_keys()

    problem = caught.value
    assert (problem.status, problem.code, problem.kind) == (409, "log_offset", Kind.CONFLICT)
    assert (problem.message, problem.advice, problem.facts["next_offset"]) == (
        "elsewhere",
        "Seek.",
        12,
    )
    assert read_retry_after(problem) == 7.0
    assert not is_passing(problem)


@pytest.mark.parametrize("status", [401, 403, 404, 502])
async def test_what_a_proxy_says_is_no_word_of_the_control_plane(status: int) -> None:
    async def answer(_: bytes) -> bytes:
        return build_reply(status, b"<html>Blocked</html>")

    async with serve(answer) as url, connect(url) as api:
        with pytest.raises(UnexpectedReply) as caught:
            await api.get_keys()

    assert is_passing(caught.value)


async def test_a_body_that_is_too_large_for_a_proxy_is_not_sent_again() -> None:
    asked = []

    async def answer(request: bytes) -> bytes:
        asked.append(request)
        return build_reply(413, b"<html><title>413 Request Entity Too Large</title></html>")

    async with serve(answer) as url, connect(url) as api:
        with pytest.raises(ProxyTooLarge) as caught:
            await retry(
                lambda: api.append_log("xcr_x", "exe_1", offset=0, epoch=1, frame=b"frame"),
                RetryPolicy(),
                SystemClock(),
                SeededRandomness(1),
            )

    problem = caught.value
    assert len(asked) == 1
    assert (problem.status, problem.kind, is_passing(problem)) == (413, Kind.TOO_LARGE, False)
    assert problem.message == (
        "POST /v1/executions/exe_1/log: a proxy on the way refuses a body of 5 bytes"
    )
    assert "client_max_body_size" in problem.advice


@asynccontextmanager
async def serve_rudely(status: int) -> AsyncIterator[str]:
    """Refuse by the announced length, read no body, and cut the connection."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if status:
            writer.write(build_reply(status, b"<html>No</html>"))
            await writer.drain()
        writer.transport.abort()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize("size", [2 << 20, 20 << 20])
async def test_a_proxy_that_refuses_without_reading_is_understood_too(size: int) -> None:
    async with serve_rudely(413) as url, connect(url) as api:
        with pytest.raises(ProxyTooLarge, match=f"refuses a body of {size} bytes"):
            await api.append_log("xcr_x", "exe_1", offset=0, epoch=1, frame=b"f" * size)


@pytest.mark.parametrize("status", [0, 502])
async def test_a_cut_in_a_large_body_is_no_word_about_its_size(status: int) -> None:
    async with serve_rudely(status) as url, connect(url) as api:
        with pytest.raises((Unreachable, UnexpectedReply)) as caught:
            await api.append_log("xcr_x", "exe_1", offset=0, epoch=1, frame=b"f" * (20 << 20))

    assert is_passing(caught.value)


async def test_a_silent_server_is_given_up_within_the_deadline() -> None:
    async def answer(_: bytes) -> bytes:
        await asyncio.sleep(5)
        return b""

    async with serve(answer) as url, connect(url, renew_s=0.1) as api:
        with pytest.raises(Unreachable) as caught:
            await api.renew("xcr_t", Renew(boot=1, no=1, executions=[]))

    assert caught.value.facts["cause"] == "timeout"


async def test_hanging_log_uploads_do_not_delay_a_renewal() -> None:
    stuck = asyncio.Event()

    async def answer(request: bytes) -> bytes:
        if b"/log?" in request:
            await stuck.wait()
        return build_reply(200, {"verdicts": {}, "renew_s": 5, "next_offset": 0})

    async with serve(answer) as url, connect(url) as api:
        uploads = [
            asyncio.create_task(api.append_log("t", f"exe_{n}", offset=0, epoch=1, frame=b""))
            for n in range(40)
        ]
        await asyncio.sleep(0.05)
        async with asyncio.timeout(1):
            reply = await api.renew("t", Renew(boot=1, no=1, executions=[]))
        stuck.set()
        await asyncio.gather(*uploads)

    assert reply.renew_s == 5


@pytest.mark.parametrize(
    ("url", "cause"),
    [("http://127.0.0.1:1", "refused"), ("http://does-not-exist.invalid", "dns")],
)
async def test_the_failing_hop_is_named(url: str, cause: str) -> None:
    async with connect(url) as api:
        with pytest.raises(Unreachable) as caught:
            await api.ask_nonce(AskNonce(runner_id=RUNNER))

    assert caught.value.facts["cause"] == cause
    assert caught.value.advice


async def test_an_endless_reply_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exclave.client.exchange.MAX_REPLY", 1000)

    async def answer(_: bytes) -> bytes:
        return build_reply(200, b"x" * 5000)

    async with serve(answer) as url, connect(url) as api:
        with pytest.raises(UnexpectedReply):
            await api.get_keys()


def test_retries_wait_as_long_as_they_are_asked_and_give_up_in_time() -> None:
    async def main() -> tuple[int, float]:
        clock = VirtualClock()
        calls = 0

        async def call() -> None:
            nonlocal calls
            calls += 1
            raise RemoteProblem(503, "unavailable", "later", facts={"retry_after_s": 20.0})

        policy = RetryPolicy(first_s=1.0, longest_s=5.0, give_up_s=100.0)
        with pytest.raises(RemoteProblem):
            await retry(call, policy, clock, SeededRandomness(1))
        return calls, clock.monotonic()

    calls, spent = run_virtual(main())

    assert calls == 6
    assert 100.0 <= spent < 100.1
