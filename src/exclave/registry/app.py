"""The registry as one app, to be mounted at `/v2`."""

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from exclave.base.loop_time import LoopTime, Measured
from exclave.control.deps import Deps
from exclave.registry import blobs, manifests, uploads
from exclave.registry.credentials import WHO, admit, issue_token, name_kind
from exclave.registry.problems import HANDLERS

_UPLOADS = "/{name:path}/blobs/uploads"


class ChargedApp:
    """Charges the loop time of each request to the org of its credential."""

    def __init__(self, app: ASGIApp, deps: Deps) -> None:
        self._app = app
        self._deps = deps

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, and charge for it when it has ended."""
        time = LoopTime()
        try:
            await Measured(self._serve(scope, receive, send), time)
        finally:
            if who := scope.get(WHO):
                kind = name_kind(scope["method"])
                self._deps.loop_shares.charge(who["org"], kind, time.long_s, 0.0)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


def build_registry_app(deps: Deps) -> ChargedApp:
    """Build the app."""
    app = Starlette(routes=build_routes(), exception_handlers=HANDLERS)
    app.router.redirect_slashes = False
    app.state.deps = deps
    return ChargedApp(app, deps)


def build_routes() -> list[Route]:
    """Return the routes; names of repositories have slashes, so each route begins with one."""
    return [
        Route("/", show_version, methods=["GET"]),
        Route("/token", issue_token, methods=["GET", "POST"]),
        Route(f"{_UPLOADS}/", uploads.begin, methods=["POST"]),
        Route(_UPLOADS, uploads.begin, methods=["POST"]),
        Route(f"{_UPLOADS}/{{upload}}", uploads.show, methods=["GET"]),
        Route(f"{_UPLOADS}/{{upload}}", uploads.append, methods=["PATCH"]),
        Route(f"{_UPLOADS}/{{upload}}", uploads.finish, methods=["PUT"]),
        Route(f"{_UPLOADS}/{{upload}}", uploads.cancel, methods=["DELETE"]),
        Route("/{name:path}/blobs/{digest}", blobs.pull, methods=["GET"]),
        Route("/{name:path}/blobs/{digest}", blobs.delete, methods=["DELETE"]),
        Route("/{name:path}/manifests/{reference}", manifests.pull, methods=["GET"]),
        Route("/{name:path}/manifests/{reference}", manifests.push, methods=["PUT"]),
        Route("/{name:path}/manifests/{reference}", manifests.delete, methods=["DELETE"]),
        Route("/{name:path}/tags/list", manifests.list_tags, methods=["GET"]),
        Route("/{name:path}/referrers/{digest}", manifests.list_referrers, methods=["GET"]),
    ]


async def show_version(request: Request) -> Response:
    """Reply that this is a registry and that the caller is authenticated."""
    await admit(request)
    return Response(
        "{}",
        media_type="application/json",
        headers={"Docker-Distribution-Api-Version": "registry/2.0"},
    )
