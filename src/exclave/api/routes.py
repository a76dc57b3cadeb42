"""Kinds of routes: the caller is known before a byte of the body is read."""

from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute

from exclave.api.credentials import admit_runner, admit_user
from exclave.api.problems import DOCUMENTED
from exclave.api.requests import LIMITS, SMALL, STREAMED, LimitedRequest
from exclave.control.deps import Deps


class PublicRoute(APIRoute):
    """A route for everybody, with a limit on the body."""

    async def admit(self, request: Request) -> None:
        """Let everybody in."""

    def hold_place(self, request: Request) -> AbstractAsyncContextManager[None]:
        """Limit how many requests are received at once."""
        del request
        return nullcontext()

    def take_turn(self, request: Request) -> AbstractAsyncContextManager[None]:
        """Limit how many requests, whose bodies are here, are worked on at once."""
        del request
        return nullcontext()

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Admit the caller first, then let FastAPI read and validate."""
        handle = super().get_route_handler()
        limit = LIMITS.get(self.path, SMALL)
        is_streamed = self.path in STREAMED

        async def admit_and_handle(request: Request) -> Response:
            limited = LimitedRequest(request.scope, request.receive, limit)
            await self.admit(limited)
            async with self.hold_place(limited):
                if is_streamed:
                    return await handle(limited)
                await limited.body()  # a slow sender takes no turn on the loop
                async with self.take_turn(limited):
                    return await handle(limited)

        return admit_and_handle


class UserRoute(PublicRoute):
    """A route for users with an API token."""

    async def admit(self, request: Request) -> None:
        """Let users in."""
        await admit_user(request.app.state.deps, request)

    def hold_place(self, request: Request) -> AbstractAsyncContextManager[None]:
        """Wait until the org has fewer requests; what streams later needs no place for that."""
        deps: Deps = request.app.state.deps
        return deps.turns.take(request.state.user.org)

    def take_turn(self, request: Request) -> AbstractAsyncContextManager[None]:
        """Wait until fewer requests of the org are worked on."""
        deps: Deps = request.app.state.deps
        return deps.loop_turns.take(request.state.user.org)


class RunnerRoute(PublicRoute):
    """A route for runners with an access token."""

    async def admit(self, request: Request) -> None:
        """Let runners in."""
        await admit_runner(request.app.state.deps, request)

    def take_turn(self, request: Request) -> AbstractAsyncContextManager[None]:
        """Wait until fewer requests of the org's runners are worked on."""
        deps: Deps = request.app.state.deps
        return deps.loop_turns.take(request.state.runner.org, "runners")


def make_router(prefix: str, tag: str, kind: type[PublicRoute]) -> APIRouter:
    """Make the router of one noun."""
    return APIRouter(
        prefix=prefix,
        tags=[tag],
        route_class=kind,
        responses=DOCUMENTED,
        generate_unique_id_function=_name_operation,
    )


def _name_operation(route: APIRoute) -> str:
    return route.name
