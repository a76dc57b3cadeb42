"""Terraform's HTTP backend on the loopback interface, with a password per execution."""

import base64
import hashlib
import hmac
import json
from http import HTTPStatus
from typing import Protocol
from urllib.parse import parse_qs, urlsplit

import h11

from exclave.base.errors import Problem
from exclave.base.ids import Randomness
from exclave.base.json_values import parse_object
from exclave.base.logs import Log
from exclave.client.problems import RemoteProblem
from exclave.runner.jobs.loopback import CommandConnection, LoopbackService, make_secret
from exclave.wire.states import MAX_STATE, LockInfo

_log = Log("runner.proxy")

_USER = "exclave"


class Backend(Protocol):
    """The store behind the proxy."""

    async def read(self) -> bytes | None:
        """Return the state."""
        ...

    async def write(self, lock_id: str, data: bytes) -> None:
        """Write a state."""
        ...

    async def lock(self, lock: LockInfo) -> None:
        """Acquire the lock."""
        ...

    async def unlock(self, lock_id: str) -> None:
        """Release the lock."""
        ...


class _Refused(Exception):  # noqa: N818 - an answer, not an error
    def __init__(self, status: HTTPStatus, body: bytes = b"") -> None:
        super().__init__(status.phrase)
        self.status = status
        self.body = body


class StateProxy(LoopbackService):
    """Serves while the block lasts; requests that still wait at its end are cancelled."""

    def __init__(self, backend: Backend, randomness: Randomness) -> None:
        self._backend = backend
        self._path = f"/{make_secret(randomness)}"
        self._password = make_secret(randomness)
        super().__init__(self._answer)

    @property
    def secrets(self) -> list[str]:
        """The secrets to mask."""
        return [self._password, self._path[1:]]

    @property
    def env(self) -> dict[str, str]:
        """The variables that configure the backend, which Terraform writes to no file."""
        address = f"{self._server.address}{self._path}"
        return {
            "TF_HTTP_ADDRESS": address,
            "TF_HTTP_LOCK_ADDRESS": address,
            "TF_HTTP_UNLOCK_ADDRESS": address,
            "TF_HTTP_LOCK_METHOD": "LOCK",
            "TF_HTTP_UNLOCK_METHOD": "UNLOCK",
            "TF_HTTP_UPDATE_METHOD": "POST",
            "TF_HTTP_USERNAME": _USER,
            "TF_HTTP_PASSWORD": self._password,
            "TF_HTTP_RETRY_MAX": "0",
        }

    async def _answer(self, connection: CommandConnection, request: h11.Request) -> bool:
        """Answer a request; return whether the connection can be used again."""
        if not self._is_authorised(request):
            # The body of a stranger is not read, so the connection cannot go on.
            await connection.reply(HTTPStatus.UNAUTHORIZED, b"")
            return False
        connection.is_stranger = False
        body = await connection.receive_body(MAX_STATE)
        await connection.reply(*await self._serve(request, body))
        return True

    async def _serve(self, request: h11.Request, body: bytes | None) -> tuple[HTTPStatus, bytes]:
        try:
            query, content = self._check(request, body)
            return await self._act(request.method.decode(), parse_qs(query), content)
        except _Refused as refused:
            return refused.status, refused.body
        except RemoteProblem as problem:
            _log.warning("state_call_refused", code=problem.code)
            return _describe_problem(problem)
        except (Problem, OSError, ValueError, KeyError, TypeError) as error:
            _log.error("state_call_failed", exc=error)
            return HTTPStatus.INTERNAL_SERVER_ERROR, str(error).encode()

    def _is_authorised(self, request: h11.Request) -> bool:
        given = dict(request.headers).get(b"authorization", b"")
        wanted = base64.b64encode(f"{_USER}:{self._password}".encode())
        return hmac.compare_digest(given, b"Basic " + wanted)

    def _check(self, request: h11.Request, body: bytes | None) -> tuple[str, bytes]:
        """Return the query and the body of a request that is for this state, and undamaged."""
        url = urlsplit(request.target.decode())
        if url.path != self._path:
            raise _Refused(HTTPStatus.FORBIDDEN)
        if body is None:
            message = f"a state has at most {MAX_STATE} bytes"
            raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message.encode())
        checksum = dict(request.headers).get(b"content-md5")
        real = base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest())
        if checksum is not None and checksum != real:
            raise _Refused(HTTPStatus.BAD_REQUEST, b"the body was damaged on its way")
        return url.query, body

    async def _act(
        self, method: str, query: dict[str, list[str]], body: bytes
    ) -> tuple[HTTPStatus, bytes]:
        match method:
            case "GET":
                state = await self._backend.read()
                return (HTTPStatus.NOT_FOUND, b"") if state is None else (HTTPStatus.OK, state)
            case "POST":
                await self._backend.write(query.get("ID", [""])[0], body)
            case "LOCK":
                await self._backend.lock(_read_lock(body))
            case "UNLOCK":
                await self._backend.unlock(_read_lock(body).id)
            case _:
                return HTTPStatus.METHOD_NOT_ALLOWED, b""
        return HTTPStatus.OK, b""


def _read_lock(body: bytes) -> LockInfo:
    lock = parse_object(body, "the lock")
    names = ("id", "operation", "info", "who", "version", "created")
    lower = {key.lower(): value for key, value in lock.items()}
    return LockInfo(**{name: str(lower.get(name) or "") for name in names})


def _describe_problem(problem: RemoteProblem) -> tuple[HTTPStatus, bytes]:
    """Return status and body as Terraform's http backend expects: 423 with the holder, else 409."""
    if problem.code != "lock_held":
        return HTTPStatus.CONFLICT, problem.message.encode()
    held = problem.facts.get("lock")
    lock = held if isinstance(held, dict) else {}
    names = {
        "id": "ID",
        "operation": "Operation",
        "info": "Info",
        "who": "Who",
        "version": "Version",
        "created": "Created",
    }
    return HTTPStatus.LOCKED, json.dumps(
        {name: lock[key] for key, name in names.items() if lock.get(key)}
    ).encode()
