"""Problems in the format of the OCI distribution specification."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ExceptionHandler

from exclave.base.errors import Kind, Problem
from exclave.control.deps import Deps
from exclave.domain.registry import NameInvalid, WrongPlace, check_name

STATUS: dict[Kind, HTTPStatus] = {
    Kind.INVALID: HTTPStatus.BAD_REQUEST,
    Kind.UNAUTHENTICATED: HTTPStatus.UNAUTHORIZED,
    Kind.FORBIDDEN: HTTPStatus.FORBIDDEN,
    Kind.NOT_FOUND: HTTPStatus.NOT_FOUND,
    Kind.CONFLICT: HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE,
    Kind.GONE: HTTPStatus.GONE,
    Kind.TOO_LARGE: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    Kind.TOO_MANY: HTTPStatus.TOO_MANY_REQUESTS,
    Kind.FULL: HTTPStatus.INSUFFICIENT_STORAGE,
    Kind.UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
}
"""The registry error code and status of each kind; the only conflict is a chunk out of order."""

_CODES = {
    "unauthenticated": "UNAUTHORIZED",
    "registry_denied": "DENIED",
    "content_too_large": "SIZE_INVALID",
    "invalid_input": "UNSUPPORTED",
    "upload_out_of_order": "BLOB_UPLOAD_INVALID",
    "busy": "TOOMANYREQUESTS",
    "rate_limited": "TOOMANYREQUESTS",
    "quota_exceeded": "DENIED",
    "disk_full": "DENIED",
}
_PASSING = frozenset({Kind.UNAVAILABLE, Kind.TOO_MANY})
_READS = frozenset({"GET", "HEAD"})


async def _answer_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)  # noqa: S101 - it is registered for problems only
    headers: dict[str, str] = {}
    if error.kind is Kind.UNAUTHENTICATED:
        headers["WWW-Authenticate"] = write_challenge(request)
    elif error.kind in _PASSING:
        headers["Retry-After"] = str(error.facts.get("retry_after_s", 1))
    elif isinstance(error, WrongPlace):
        headers |= write_progress(request.url.path, error.facts["size"])
    code = _CODES.get(error.code, error.code.upper())
    detail = {"hint": error.advice} if error.advice else {}
    return render(STATUS[error.kind], code, error.message, detail, headers)


async def _answer_http(request: Request, error: Exception) -> Response:
    del request
    assert isinstance(error, HTTPException)  # noqa: S101 - as above
    missing = error.status_code == HTTPStatus.NOT_FOUND
    message = "there is no such route" if missing else error.detail
    return render(error.status_code, "UNSUPPORTED", message, {}, error.headers or {})


def render(
    status: int, code: str, message: str, detail: Mapping[str, str], headers: Mapping[str, str]
) -> Response:
    """Return a problem as the error body that registry clients expect."""
    fault = {"code": code, "message": message, "detail": dict(detail)}
    return JSONResponse({"errors": [fault]}, status_code=status, headers=dict(headers))


def write_challenge(request: Request) -> str:
    """Return the `WWW-Authenticate` challenge: where to get a token, and for which scope."""
    deps: Deps = request.app.state.deps
    host = urlsplit(deps.runner_url).netloc
    asked = [f'realm="{deps.runner_url}/v2/token"', f'service="{host}"']
    try:
        name = check_name(request.path_params.get("name", ""))
    except NameInvalid:
        pass  # an invalid name is not echoed
    else:
        actions = "pull" if request.method in _READS else "pull,push"
        asked.append(f'scope="repository:{name}:{actions}"')
    return f"Bearer {','.join(asked)}"


def write_progress(location: str, size: object) -> dict[str, str]:
    """Return the headers that say where an upload continues and how much has arrived."""
    arrived = int(str(size))
    return {"Location": location, "Range": f"0-{max(0, arrived - 1)}"}


HANDLERS: Mapping[Any, ExceptionHandler] = {Problem: _answer_problem, HTTPException: _answer_http}
"""Handlers of the app; anything else is a bug and caught at the edge."""
