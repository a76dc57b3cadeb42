"""Bare routes: frequent requests are served without FastAPI, with the same replies.

Each has a twin that FastAPI describes in the OpenAPI document but never serves. The edge finds them
in a table, without FastAPI's routing.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Generic, TypeVar

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from exclave.api.credentials import admit_runner, admit_user
from exclave.api.problems import answer_error
from exclave.api.requests import SMALL, VITAL, LimitedRequest
from exclave.base.errors import Problem
from exclave.control.deps import Deps
from exclave.domain.identity import RunnerIdentity, User

Who = TypeVar("Who")

CLIENT_GONE = 499
"""The status in the access log of a request whose client disconnected before the reply."""


class BareRoute(ABC, Generic[Who]):
    """An ASGI endpoint for POST that authenticates the caller before it reads the body."""

    limit = SMALL
    status = 200

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Authenticate the caller, read the body, send the reply."""
        if scope["method"] != "POST":
            raise HTTPException(405, headers={"Allow": "POST"})
        request = LimitedRequest(scope, receive, self.limit)
        try:
            who = await self.admit(request)
            async with self.hold_slot(who):
                await request.body()  # a slow sender takes no turn on the loop
                reply = await self.share_loop(request, who)
        except (Problem, RequestValidationError, HTTPException) as error:
            response = await answer_error(request, error)
        else:
            response = self._write(reply)
        await response(scope, receive, send)

    def hold_slot(self, who: Who) -> AbstractAsyncContextManager[None]:
        """Return the context in which a request is received, which may wait for a slot."""
        del who
        return nullcontext()

    async def share_loop(self, request: LimitedRequest, who: Who) -> BaseModel | None:
        """Run a request whose body has arrived, when the org may use the event loop."""
        return await self.answer(request, who)

    def _write(self, reply: BaseModel | None) -> Response:
        if reply is None:
            return Response(status_code=CLIENT_GONE)
        body = reply.__pydantic_serializer__.to_json(reply)
        return Response(body, self.status, media_type="application/json")

    @abstractmethod
    async def admit(self, request: Request) -> Who:
        """Authenticate the caller."""

    @abstractmethod
    async def answer(self, request: LimitedRequest, who: Who) -> BaseModel | None:
        """Return the reply; None if the caller hung up."""


class BarePublicRoute(BareRoute[None]):
    """A route for everybody."""

    async def admit(self, request: Request) -> None:
        """Accept every caller."""


class BareRunnerRoute(BareRoute[RunnerIdentity]):
    """A route for runners that keeps executions alive, and waits for no other kind of request.

    Its bodies are small, so that none of them takes long.
    """

    limit = VITAL

    async def admit(self, request: Request) -> RunnerIdentity:
        """Authenticate a runner."""
        return await admit_runner(self.deps, request)

    async def share_loop(self, request: LimitedRequest, who: RunnerIdentity) -> BaseModel | None:
        """Run the request when the org has a free slot for requests of this kind."""
        async with self.deps.loop_slots.hold(who.org, "vital"):
            return await self.answer(request, who)


class BareUserRoute(BareRoute[User]):
    """A route for users."""

    async def admit(self, request: Request) -> User:
        """Authenticate a user."""
        return await admit_user(self.deps, request)

    def hold_slot(self, who: User) -> AbstractAsyncContextManager[None]:
        """Wait for a request slot of the org."""
        return self.deps.request_slots.hold(who.org)

    async def share_loop(self, request: LimitedRequest, who: User) -> BaseModel | None:
        """Run the request when the org has a slot and loop time left."""

        async def answer() -> BaseModel | None:
            async with self.deps.loop_slots.hold(who.org):
                return await self.answer(request, who)

        body = len(await request.body())
        path = request.scope["route"].path
        return await self.deps.loop_shares.run(who.org, path, answer, body=body)


class BareTable:
    """The bare routes of an app by path; at most the last but one segment of a path is an id."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._plain: dict[str, Route] = {}
        self._named: dict[tuple[str, str], tuple[Route, str]] = {}
        for route in routes:
            parent, last = _split(route.path)
            before, name = _split(parent)
            if name.startswith("{"):
                self._named[before, last] = route, name.strip("{}")
            else:
                self._plain[route.path] = route

    def find(self, scope: Scope) -> Route | None:
        """Return the route of a POST, and set in the scope what routers set there."""
        path = scope["path"]
        params: dict[str, str] = {}
        route = self._plain.get(path)
        if route is None:
            parent, last = _split(path)
            before, value = _split(parent)
            route, name = self._named.get((before, last), (None, ""))
            params[name] = value
        if route is None or scope["method"] != "POST":
            return None
        scope["route"], scope["path_params"] = route, params
        return route


def _split(path: str) -> tuple[str, str]:
    before, _, last = path.rpartition("/")
    return before, last
