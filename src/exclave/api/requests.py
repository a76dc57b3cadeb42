"""Request bodies with limits: a maximum size, and only JSON that can be stored."""

import json
import re
from collections.abc import AsyncGenerator
from http import HTTPStatus
from typing import TypeVar

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Receive, Scope

from exclave.base.json_values import Json
from exclave.base.loop_time import give_way
from exclave.wire.states import MAX_FILE

Model = TypeVar("Model", bound=BaseModel)

SMALL = 1 << 20
VITAL = 64 << 10
"""For requests that keep executions alive: they are never delayed, so they have to be quick."""
LIMITS: dict[str, int] = {
    "/v1/poll": VITAL,
    "/v1/renew": VITAL,
    "/v1/executions/{execution}/start": VITAL,
    "/v1/stack/report": 96 << 10,
    "/v1/attest/challenge": 4 << 10,
    "/v1/attest/enrol": 64 << 10,
    "/v1/apps/{app}/sync": 64 << 20,
    "/v1/executions/{execution}/log": 4 << 20,
    "/v1/executions/{execution}/result": 2 << 20,
    "/v1/executions/{execution}/attachments/{name}": MAX_FILE,
    "/v1/executions/{execution}/state": MAX_FILE,
}
"""Routes whose bodies may be larger, or must be smaller, than the usual MiB."""

STREAMED = frozenset(
    {
        "/v1/apps/{app}/sync",
        "/v1/executions/{execution}/attachments/{name}",
        "/v1/executions/{execution}/state",
    }
)
"""Routes that work on their bodies while they arrive."""

MOST_VALUES = 50_000
"""Of one body: so many are parsed and checked in some ten milliseconds, on the event loop."""
_QUICK = 64 << 10
"""A larger body is parsed and checked in steps, so that other requests run in between."""
_SEPARATORS = (b",", b"[", b"{")
_STRING = re.compile(rb'"[^"]*"')
_NUL = rb"\u0000"
"""An escaped NUL: an even number of backslashes before it would make it plain text."""


class BodyTooLarge(HTTPException):
    """The body is larger than the route allows; an HTTPException, because FastAPI re-raises it."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body has more than {limit} bytes"
        )


class LimitedRequest(Request):
    """A request whose body is never read beyond its limit, and whose JSON is strict."""

    def __init__(self, scope: Scope, receive: Receive, limit: int = SMALL) -> None:
        super().__init__(scope, receive)
        self._limit = limit

    async def stream(self) -> AsyncGenerator[bytes, None]:
        """Yield the body up to its limit; `BodyTooLarge` beyond."""
        announced = self.headers.get("content-length", "")
        size = (
            int(announced) if announced.isdecimal() and len(announced) <= len(str(1 << 62)) else 0
        )
        if size > self._limit:
            raise BodyTooLarge(self._limit)
        size = 0
        async for chunk in super().stream():
            size += len(chunk)
            if size > self._limit:
                raise BodyTooLarge(self._limit)
            yield chunk

    async def json(self) -> Json:
        """Parse the body."""
        return parse_json(await self.body())


def parse_json(body: bytes) -> Json:
    """Parse strict JSON: no NaN, no lone surrogates, bounded depth, and no NUL in any text.

    PostgreSQL stores no NUL, so it is refused for all alike.
    """
    if _count_values(body) > MOST_VALUES:
        raise json.JSONDecodeError(f"there are more than {MOST_VALUES} values", "", 0)
    if _NUL in body and _NUL in _drop_backslashes(body):
        raise json.JSONDecodeError("text may not contain a NUL character", "", 0)
    try:
        document: Json = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise json.JSONDecodeError(str(error), "", 0) from error
    return document


def _count_values(body: bytes) -> int:
    """Return a bound on the values of an unparsed body; exact only if there may be many."""
    most = sum(map(body.count, _SEPARATORS))
    if most <= MOST_VALUES:
        return most
    bare = _STRING.sub(b"", _drop_backslashes(body).replace(b'\\"', b""))
    return sum(map(bare.count, _SEPARATORS))


def _drop_backslashes(body: bytes) -> bytes:
    """Return JSON without escaped backslashes: one that is left escapes what follows it.

    Whole bodies are scanned on the event loop, and this takes a tenth of the time of a pattern
    that counts backslashes.
    """
    return body.replace(rb"\\", b"")


async def read_model(request: LimitedRequest, model: type[Model]) -> Model:
    """Return the body as a model, with the same problems as FastAPI's own routes."""
    if not request.headers.get("content-type", "").startswith("application/json"):
        raise _refuse(("body",), "send it as application/json")
    try:
        document = await request.json()
        if len(await request.body()) <= _QUICK:
            return model.model_validate(document)
        await give_way()
        checked = model.model_validate(document)
        await give_way()
    except json.JSONDecodeError as error:
        raise _refuse(("body",), error.msg) from error
    except ValidationError as error:
        errors = [{**item, "loc": ("body", *item["loc"])} for item in error.errors()]
        raise RequestValidationError(errors) from error
    return checked


def _refuse(where: tuple[str, ...], message: str) -> RequestValidationError:
    return RequestValidationError([{"type": "json_invalid", "loc": where, "msg": message}])
