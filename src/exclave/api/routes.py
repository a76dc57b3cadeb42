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

Work = Callable[[], Coroutine[Any, Any, Response]]


class PublicRoute(APIRoute):
    """A route for everybody, with a limit on the body."""

    async def admit(self, request: Request) -> None:
        """Let everybody in."""

    def hold_place(self, request: Request) -> AbstractAsyncContextManager[None]:
        """Limit how many requests are received at once."""
        del request
        return nullcontext()

    async def share_loop(self, request: Request, work: Work) -> Response:
        """Answer a request whose body is here, when the caller may have the event loop."""
        del request
        return await work()

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
                return await self.share_loop(limited, lambda: handle(limited))

        return admit_and_handle


class UserRoute(PublicRoute):
    """A route for users with an API token."""

    async def admit(self, request: Request) -> None:
        """Let users in."""
        await admit_user(request.app.state.deps, request)

    def hold_place(self, request: Request) -> AbstractAsyncContextManager[None]:
        """Wait until the org has fewer requests; what streams later needs no place for that."""
        deps: Deps = request.app.state.deps
        return deps.request_slots.take(request.state.user.org)

    async def share_loop(self, request: Request, work: Work) -> Response:
        """Wait until fewer requests of the org are worked on, and it can afford this one."""
        return await _share_loop(
            request.app.state.deps, request.state.user.org, "", self.path, work
        )


class RunnerRoute(PublicRoute):
    """A route for runners with an access token."""

    async def admit(self, request: Request) -> None:
        """Let runners in."""
        await admit_runner(request.app.state.deps, request)

    async def share_loop(self, request: Request, work: Work) -> Response:
        """Wait until fewer requests of the org's runners are worked on, and it can afford this."""
        org = request.state.runner.org
        return await _share_loop(request.app.state.deps, org, "runners", self.path, work)


async def _share_loop(deps: Deps, org: str, kind: str, path: str, work: Work) -> Response:
    async def answer() -> Response:
        async with deps.loop_slots.take(org, kind):
            return await work()

    return await deps.loop_shares.run(org, path, answer)


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
