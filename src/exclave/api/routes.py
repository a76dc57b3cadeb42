"""Route classes that authenticate the caller before they read the body."""

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
        """Accept every caller."""

    def hold_slot(self, request: Request) -> AbstractAsyncContextManager[None]:
        """Return the context in which a request is received, which may wait for a slot."""
        del request
        return nullcontext()

    async def share_loop(self, request: LimitedRequest, work: Work) -> Response:
        """Run a request whose body has arrived, when the org may use the event loop."""
        del request
        return await work()

    async def charge_loop(self, request: LimitedRequest, work: Work) -> Response:
        """Run a request that works on its body while it arrives: without a slot, but charged."""
        del request
        return await work()

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return a handler that authenticates the caller before FastAPI reads and validates."""
        handle = super().get_route_handler()
        limit = LIMITS.get(self.path, SMALL)
        is_streamed = self.path in STREAMED

        async def admit_and_handle(request: Request) -> Response:
            limited = LimitedRequest(request.scope, request.receive, limit)
            await self.admit(limited)
            async with self.hold_slot(limited):
                if is_streamed:
                    return await self.charge_loop(limited, lambda: handle(limited))
                await limited.body()  # a slow sender takes no turn on the loop
                return await self.share_loop(limited, lambda: handle(limited))

        return admit_and_handle


class UserRoute(PublicRoute):
    """A route for users with an API token."""

    async def admit(self, request: Request) -> None:
        """Authenticate a user."""
        await admit_user(request.app.state.deps, request)

    def hold_slot(self, request: Request) -> AbstractAsyncContextManager[None]:
        """Wait for a request slot of the org; a streamed reply does not keep it."""
        deps: Deps = request.app.state.deps
        return deps.request_slots.hold(request.state.user.org)

    async def share_loop(self, request: LimitedRequest, work: Work) -> Response:
        """Run the request when the org has a slot and loop time left."""
        return await _share_loop(request, request.state.user.org, "", self.path, work)

    async def charge_loop(self, request: LimitedRequest, work: Work) -> Response:
        """Run the request when the org has loop time left."""
        deps: Deps = request.app.state.deps
        return await deps.loop_shares.run(request.state.user.org, self.path, work)


class RunnerRoute(PublicRoute):
    """A route for runners with an access token."""

    async def admit(self, request: Request) -> None:
        """Authenticate a runner."""
        await admit_runner(request.app.state.deps, request)

    async def share_loop(self, request: LimitedRequest, work: Work) -> Response:
        """Run the request when the runners of the org have a slot and loop time left."""
        return await _share_loop(request, request.state.runner.org, "runners", self.path, work)

    async def charge_loop(self, request: LimitedRequest, work: Work) -> Response:
        """Run the request when the org has loop time left."""
        deps: Deps = request.app.state.deps
        return await deps.loop_shares.run(request.state.runner.org, self.path, work)


async def _share_loop(
    request: LimitedRequest, org: str, kind: str, path: str, work: Work
) -> Response:
    deps: Deps = request.app.state.deps

    async def answer() -> Response:
        async with deps.loop_slots.hold(org, kind):
            return await work()

    return await deps.loop_shares.run(org, path, answer, body=len(await request.body()))


def make_router(prefix: str, tag: str, kind: type[PublicRoute]) -> APIRouter:
    """Return the router of one resource."""
    return APIRouter(
        prefix=prefix,
        tags=[tag],
        route_class=kind,
        responses=DOCUMENTED,
        generate_unique_id_function=_name_operation,
    )


def _name_operation(route: APIRoute) -> str:
    return route.name
