"""The OpenAPI document of an app: bare routes included, problems described once."""

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.routing import BaseRoute

from exclave.base.json_values import Json
from exclave.wire.model import ProblemReply


def describe(app: FastAPI, *unserved: APIRouter) -> None:
    """Set the app's OpenAPI function; `unserved` routers describe routes served elsewhere."""

    def write() -> dict[str, Json]:
        if app.openapi_schema is None:
            app.openapi_schema = _write(app, [r for router in unserved for r in router.routes])
        return app.openapi_schema

    app.openapi = write  # type: ignore[method-assign]


def _write(app: FastAPI, more: list[BaseRoute]) -> dict[str, Json]:
    document = get_openapi(
        title=app.title, version=app.version, summary=app.summary, routes=[*more, *app.routes]
    )
    schemas = document["components"]["schemas"]
    schemas["ProblemReply"] = ProblemReply.model_json_schema()
    document["paths"] = dict(sorted(document["paths"].items()))
    document["components"]["schemas"] = dict(sorted(schemas.items()))
    return document
