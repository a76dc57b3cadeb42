"""The Control API as one app."""

from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.routing import Route

from exclave import __version__
from exclave.api import health
from exclave.api.control import (
    actions,
    apps,
    attachments,
    audit,
    builds,
    cloud_accounts,
    drift_findings,
    installs,
    installs_views,
    installs_work,
    jobs,
    logs,
    metrics,
    orgs,
    registry,
    runners,
    stacks,
    steps,
    tf_states,
    tokens,
    workflows,
)
from exclave.api.document import describe
from exclave.api.edge import Edge
from exclave.api.metrics import Metrics
from exclave.api.problems import HANDLERS
from exclave.control.deps import Deps

_ROUTERS = (
    actions.router, apps.router, builds.router, orgs.router, tokens.router, registry.router,
    installs.router, installs_views.router, installs_work.router, installs_work.files,
    drift_findings.router, cloud_accounts.router, stacks.router, runners.router,
    workflows.router, steps.router, jobs.router, attachments.router, tf_states.router,
    logs.router, audit.router, health.router,
    metrics.router,
)  # fmt: skip


def build_control_app(deps: Deps, figures: Metrics | None = None) -> FastAPI:
    """Build the app; `figures` may be shared with the Runner API of the same process."""
    shared = figures or Metrics()
    bare = [Route(workflows.CREATE, workflows.CreateRoute(deps), methods=["POST"])]
    app = FastAPI(
        title="Exclave Control API",
        version=__version__,
        summary="What people and their programs do with Exclave.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False, "logs": False},
        exception_handlers=dict(HANDLERS),
        middleware=[Middleware(Edge, deps=deps, metrics=shared, api="control", bare=bare)],
    )
    app.state.deps = deps
    app.state.metrics = shared
    app.router.routes.extend(bare)
    for router in _ROUTERS:
        app.include_router(router)
    describe(app, workflows.described)
    return app
