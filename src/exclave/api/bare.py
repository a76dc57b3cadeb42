"""Bare routes: what is asked all the time is served without FastAPI, with the same answers.

Each has a twin that FastAPI describes in the OpenAPI document but never serves.
"""

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from exclave.api.credentials import admit_runner, admit_user
from exclave.api.requests import SMALL, LimitedRequest
from exclave.control.deps import Deps
from exclave.domain.identity import RunnerIdentity, User

Who = TypeVar("Who")

CLIENT_GONE = 499
"""What the log calls a request whose client did not wait for the answer."""


class BareRoute(ABC, Generic[Who]):
    """An ASGI endpoint for POST; the caller is known before a byte of the body is read."""

    limit = SMALL
    status = 200

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Admit, read, answer."""
        if scope["method"] != "POST":
            raise HTTPException(405, headers={"Allow": "POST"})
        request = LimitedRequest(scope, receive, self.limit)
        who = await self.admit(request)
        reply = await self.answer(request, who)
        if reply is None:
            response = Response(status_code=CLIENT_GONE)
        else:
            body = reply.__pydantic_serializer__.to_json(reply)
            response = Response(body, self.status, media_type="application/json")
        await response(scope, receive, send)

    @abstractmethod
    async def admit(self, request: Request) -> Who:
        """Find out who is calling."""

    @abstractmethod
    async def answer(self, request: LimitedRequest, who: Who) -> BaseModel | None:
        """Carry the request out; None if the caller hung up."""


class BareRunnerRoute(BareRoute[RunnerIdentity]):
    """A route for runners."""

    async def admit(self, request: Request) -> RunnerIdentity:
        """Let runners in."""
        return await admit_runner(self.deps, request)


class BareUserRoute(BareRoute[User]):
    """A route for users."""

    async def admit(self, request: Request) -> User:
        """Let users in."""
        return await admit_user(self.deps, request)
