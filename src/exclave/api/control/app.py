"""The Control API as one app."""

from fastapi import FastAPI
from starlette.middleware import Middleware

from exclave import __version__
from exclave.api import health
from exclave.api.control import (
    audit,
    installs,
    jobs,
    logs,
    metrics,
    orgs,
    runners,
    steps,
    tokens,
    workflows,
)
from exclave.api.document import describe
from exclave.api.edge import Edge
from exclave.api.metrics import Metrics
from exclave.api.problems import HANDLERS
from exclave.control.deps import Deps

_ROUTERS = (
    orgs.router, tokens.router, installs.router, runners.router, workflows.router, steps.router,
    jobs.router, logs.router, audit.router, health.router, metrics.router,
)  # fmt: skip


def build_control_app(deps: Deps, figures: Metrics | None = None) -> FastAPI:
    """Build the app; `figures` may be shared with the Runner API of the same process."""
    shared = figures or Metrics()
    app = FastAPI(
        title="Exclave Control API",
        version=__version__,
        summary="What people and their programs do with Exclave.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False, "logs": False},
        exception_handlers=dict(HANDLERS),
        middleware=[Middleware(Edge, deps=deps, metrics=shared, api="control")],
    )
    app.state.deps = deps
    app.state.metrics = shared
    for router in _ROUTERS:
        app.include_router(router)
    describe(app)
    return app
