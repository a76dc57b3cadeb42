"""Metrics of the whole instance, without authentication, so they name no tenant."""

from fastapi import Request
from starlette.responses import PlainTextResponse

from exclave.api.credentials import DepsOf
from exclave.api.metrics import CONTENT_TYPE, Metrics
from exclave.api.routes import PublicRoute, make_router
from exclave.control.metrics import gather_totals

router = make_router("", "health", PublicRoute)


@router.get("/metrics", response_class=PlainTextResponse)
async def show_metrics(request: Request, deps: DepsOf) -> PlainTextResponse:
    """Return the metrics in Prometheus' text format."""
    metrics: Metrics = request.app.state.metrics
    text = metrics.render(await gather_totals(deps))
    return PlainTextResponse(text, media_type=CONTENT_TYPE)
