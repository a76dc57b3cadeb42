"""The registry as one app, to be mounted at `/v2`."""

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from exclave.control.deps import Deps
from exclave.registry import blobs, manifests, uploads
from exclave.registry.credentials import admit, issue_token
from exclave.registry.problems import HANDLERS

_UPLOADS = "/{name:path}/blobs/uploads"


def build_registry_app(deps: Deps) -> Starlette:
    """Build the app; names of repositories have slashes, so each route begins with one."""
    app = Starlette(
        routes=[
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
        ],
        exception_handlers=HANDLERS,
    )
    app.router.redirect_slashes = False
    app.state.deps = deps
    return app


async def show_version(request: Request) -> Response:
    """Reply that this is a registry and that the caller is authenticated."""
    await admit(request)
    return Response(
        "{}",
        media_type="application/json",
        headers={"Docker-Distribution-Api-Version": "registry/2.0"},
    )
