"""A control plane of prepared answers, a clock that does not wait, and samples of all nouns."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from exclave.base.ids import Ids, SeededRandomness

NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
AT = NOW.isoformat()
URL = "http://control.test"
TOKEN = "xcl_" + "0" * 52
DIGEST = "sha256:" + "a" * 64


@dataclass(frozen=True)
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str


Cli = Callable[..., Ran]


def make_id(prefix: str, number: int = 1) -> str:
    return f"{prefix}_{number:026}"


INS, ORG, QUE, WFL, JOB, EXE, RUN, TOK, RGT = (
    make_id(prefix) for prefix in ("ins", "org", "que", "wfl", "job", "exe", "run", "tok", "rgt")
)


class FakeClock:
    """Stands still, except when somebody sleeps."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def now(self) -> datetime:
        return NOW + timedelta(seconds=sum(self.slept))

    def monotonic(self) -> float:
        return sum(self.slept)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)


class Chunks(httpx.AsyncByteStream):
    """A body that arrives piece by piece and may end in an error."""

    def __init__(self, pieces: Sequence[bytes | Exception]) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            await asyncio.sleep(0)
            if isinstance(piece, Exception):
                raise piece
            yield piece


Answer = httpx.Response | Exception


@dataclass
class FakeControl:
    """Answers each route with what was prepared; the last answer is repeated."""

    answers: dict[tuple[str, str], list[Answer]] = field(default_factory=dict)
    requests: list[httpx.Request] = field(default_factory=list)
    clock: FakeClock = field(default_factory=FakeClock)

    def answer(self, method: str, path: str, body: Any = None, status: int = 200) -> None:
        self.add(method, path, httpx.Response(status, json=body))

    def refuse(
        self, method: str, path: str, status: int, code: str, detail: str, hint: str = ""
    ) -> None:
        body = {"title": code, "status": status, "code": code, "detail": detail, "hint": hint}
        self.answer(method, path, body, status)

    def stream(self, path: str, *pieces: bytes | Exception) -> None:
        headers = {"Content-Type": "text/event-stream"}
        self.add("GET", path, httpx.Response(200, headers=headers, stream=Chunks(pieces)))

    def add(self, method: str, path: str, answer: Answer) -> None:
        self.answers.setdefault((method, path), []).append(answer)

    @property
    def transport(self) -> httpx.MockTransport:
        return httpx.MockTransport(self._handle)

    @property
    def ids(self) -> Ids:
        return Ids(self.clock, SeededRandomness(1))

    def sent(self, method: str, path: str) -> list[httpx.Request]:
        return [each for each in self.requests if (each.method, read_path(each)) == (method, path)]

    async def _handle(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        await asyncio.sleep(0)
        prepared = self.answers.get((request.method, read_path(request)))
        if not prepared:
            raise AssertionError(f"no answer for {request.method} {request.url}")
        answer = prepared.pop(0) if len(prepared) > 1 else prepared[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def read_path(request: httpx.Request) -> str:
    return request.url.raw_path.decode().partition("?")[0]


def event(name: str, data: str = "", event_id: str = "") -> bytes:
    head = f"id: {event_id}\n" if event_id else ""
    return f"{head}event: {name}\ndata: {data}\n\n".encode()
