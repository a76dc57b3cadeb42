"""The Runner API as one app: bare routes for frequent requests, FastAPI for the others."""

from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

from exclave import __version__
from exclave.api import health
from exclave.api.document import describe
from exclave.api.edge import Edge
from exclave.api.metrics import Metrics
from exclave.api.problems import HANDLERS
from exclave.api.runner import (
    attachments,
    attest,
    configs,
    enrolment,
    executions,
    polls,
    registry,
    stacks,
    states,
)
from exclave.control.deps import Deps

_ROUTERS = (
    enrolment.router, attest.router, executions.router, attachments.router, states.router,
    stacks.public, stacks.beacons, stacks.router, configs.router, registry.router, health.router,
)  # fmt: skip


def build_runner_app(
    deps: Deps, figures: Metrics | None = None, registry_app: ASGIApp | None = None
) -> Starlette:
    """Build the app; `figures` may be shared with the Control API of the same process.

    `registry_app` is served at `/v2`, where clients of registries look for it.
    """
    bare = [
        Route("/v1/token", enrolment.TokenRoute(deps)),
        Route("/v1/poll", polls.PollRoute(deps)),
        Route("/v1/renew", polls.RenewRoute(deps)),
        Route(executions.START, executions.StartRoute(deps)),
        Route(executions.RESULT, executions.ResultRoute(deps)),
    ]
    edge = Middleware(Edge, deps=deps, metrics=figures or Metrics(), api="runner", bare=bare)
    app = Starlette(
        routes=[
            *bare,
            *([] if registry_app is None else [Mount("/v2", registry_app)]),
            Mount("/", build_inner_app(deps)),
        ],
        middleware=[edge],
        exception_handlers=HANDLERS,
    )
    app.router.redirect_slashes = False
    return app


def build_inner_app(deps: Deps) -> FastAPI:
    """Build the FastAPI app; its OpenAPI document describes the bare routes too."""
    app = FastAPI(
        title="Exclave Runner API",
        version=__version__,
        summary="How runners enrol, poll for jobs, renew leases and report results.",
        openapi_url=None,
        redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False, "logs": False},
        exception_handlers=dict(HANDLERS),
    )
    app.state.deps = deps
    for router in _ROUTERS:
        app.include_router(router)
    describe(app, enrolment.described, polls.described, executions.described)
    return app
