"""The Runner API as one app: two bare routes beside FastAPI."""

from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Mount, Route

from exclave import __version__
from exclave.api import health
from exclave.api.document import describe
from exclave.api.edge import Edge
from exclave.api.metrics import Metrics
from exclave.api.problems import HANDLERS
from exclave.api.runner import enrolment, executions
from exclave.api.runner.polls import PollRoute, RenewRoute, described
from exclave.control.deps import Deps


def build_runner_app(deps: Deps, figures: Metrics | None = None) -> Starlette:
    """Build the app; `figures` may be shared with the Control API of the same process."""
    app = Starlette(
        routes=[
            Route("/v1/poll", PollRoute(deps)),
            Route("/v1/renew", RenewRoute(deps)),
            Mount("/", build_inner_app(deps)),
        ],
        middleware=[Middleware(Edge, deps=deps, metrics=figures or Metrics(), api="runner")],
        exception_handlers=HANDLERS,
    )
    app.router.redirect_slashes = False
    return app


def build_inner_app(deps: Deps) -> FastAPI:
    """Build what FastAPI serves; its OpenAPI document tells about the bare routes too."""
    app = FastAPI(
        title="Exclave Runner API",
        version=__version__,
        summary="How runners enrol, ask for work, keep it and hand in results.",
        openapi_url=None,
        redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False, "logs": False},
        exception_handlers=dict(HANDLERS),
    )
    app.state.deps = deps
    for router in (enrolment.router, executions.router, health.router):
        app.include_router(router)
    describe(app, described)
    return app
