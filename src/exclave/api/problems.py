"""Problems over HTTP: the one table from kind to status, and the handlers that use it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi.exceptions import RequestValidationError
from fastapi.routing import iter_route_contexts
from pydantic import ValidationError
from pydantic_core import ErrorDetails
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ExceptionHandler

from exclave.base.errors import Kind, Problem
from exclave.base.json_values import Json
from exclave.wire.model import ProblemReply

STATUS: dict[Kind, HTTPStatus] = {
    Kind.INVALID: HTTPStatus.UNPROCESSABLE_ENTITY,
    Kind.UNAUTHENTICATED: HTTPStatus.UNAUTHORIZED,
    Kind.FORBIDDEN: HTTPStatus.FORBIDDEN,
    Kind.NOT_FOUND: HTTPStatus.NOT_FOUND,
    Kind.CONFLICT: HTTPStatus.CONFLICT,
    Kind.GONE: HTTPStatus.GONE,
    Kind.TOO_LARGE: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    Kind.TOO_MANY: HTTPStatus.TOO_MANY_REQUESTS,
    Kind.FULL: HTTPStatus.INSUFFICIENT_STORAGE,
    Kind.UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
}
"""The HTTP status of each kind of problem."""

MEDIA_TYPE = "application/problem+json"
DOCUMENTED: dict[int | str, dict[str, Json]] = {
    "default": {
        "description": "A problem: what happened, what to do, and facts for machines.",
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemReply"}}},
    }
}
"""How every route documents whatever is not a success."""

_CODES = {
    HTTPStatus.NOT_FOUND: ("no_such_route", "Check the path against the API's reference."),
    HTTPStatus.METHOD_NOT_ALLOWED: ("method_not_allowed", "Use a method named in `Allow`."),
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: ("too_large", "Send less at once."),
}
_MOST_ERRORS = 50
_RETRY_S = "1"


class ProblemResponse(JSONResponse):
    """A response that carries a problem."""

    media_type = MEDIA_TYPE


def render(
    status: int,
    code: str,
    detail: str,
    *,
    hint: str = "",
    facts: Mapping[str, object] | None = None,
    headers: Mapping[str, str] | None = None,
) -> ProblemResponse:
    """Return the response for a problem; its facts never override the standard fields."""
    reply = ProblemReply(
        type=f"urn:exclave:problem:{code}",
        title=HTTPStatus(status).phrase,
        status=status,
        code=code,
        detail=detail,
        hint=hint,
    )
    body = {**(facts or {}), **reply.model_dump()}
    return ProblemResponse(body, status_code=status, headers=headers)


def render_problem(problem: Problem) -> ProblemResponse:
    """Return the response for an expected failure."""
    status = STATUS[problem.kind]
    headers = {}
    if status is HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    if status in {HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS}:
        headers["Retry-After"] = str(problem.facts.get("retry_after_s", _RETRY_S))
    return render(
        status,
        problem.code,
        problem.message,
        hint=problem.advice,
        facts=problem.facts,
        headers=headers,
    )


def render_invalid(errors: Sequence[ErrorDetails]) -> ProblemResponse:
    """Return the response for invalid fields, without their values, which may be secret."""
    shown = [
        {"field": ".".join(str(part) for part in error["loc"]), "message": error["msg"]}
        for error in errors[:_MOST_ERRORS]
    ]
    first = f": `{shown[0]['field']}`: {shown[0]['message']}" if shown else ""
    return render(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "invalid_input",
        f"the request is not valid{first}",
        hint="Correct the fields named in `errors`.",
        facts={"errors": shown, "error_count": len(errors)},
    )


def render_bug(request_id: str) -> ProblemResponse:
    """Return the response for an unexpected failure; its cause is only in the server's log."""
    return render(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "bug",
        "the server failed in a way it did not expect",
        hint="Try again; if it stays, report it with the request id.",
        facts={"request_id": request_id},
    )


async def _answer_problem(request: Request, error: Exception) -> ProblemResponse:
    del request
    assert isinstance(error, Problem)  # noqa: S101 - it is registered for problems only
    return render_problem(error)


async def _answer_invalid(request: Request, error: Exception) -> ProblemResponse:
    del request
    assert isinstance(error, RequestValidationError | ValidationError)  # noqa: S101 - as above
    return render_invalid(error.errors())


async def _answer_http(request: Request, error: Exception) -> ProblemResponse:
    assert isinstance(error, HTTPException)  # noqa: S101 - as above
    status = HTTPStatus(error.status_code)
    code, hint = _CODES.get(status, ("invalid_input", "Check the request."))
    detail, headers = error.detail, error.headers
    if status is HTTPStatus.NOT_FOUND:
        detail = "there is no such route"
    elif status is HTTPStatus.METHOD_NOT_ALLOWED:
        detail = f"this route does not know {request.method[:16]}"
        headers = {"Allow": ", ".join(_find_methods(request)) or (headers or {}).get("Allow", "")}
    return render(status, code, detail, hint=hint, headers=headers)


def _find_methods(request: Request) -> list[str]:
    """Return the methods of all routes with this path; a single route knows only its own."""
    methods: set[str] = set()
    for context in iter_route_contexts(request.app.routes):
        route = context.original_route
        if isinstance(route, Route) and route.path_regex.match(request.url.path):
            methods |= route.methods or set()
    return sorted(methods)


async def answer_error(request: Request, error: Exception) -> Response:
    """Send the response for an exception, for a route outside of the FastAPI apps."""
    handler = next(handle for kind, handle in _HANDLERS.items() if isinstance(error, kind))
    return await handler(request, error)


_HANDLERS: Mapping[type[Exception], Callable[[Request, Exception], Awaitable[Response]]] = {
    Problem: _answer_problem,
    RequestValidationError: _answer_invalid,
    HTTPException: _answer_http,
}
HANDLERS: Mapping[Any, ExceptionHandler] = _HANDLERS
"""Handlers of the apps; anything else is a bug and caught at the edge."""
