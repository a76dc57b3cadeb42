"""The Idempotency-Key header of POST requests."""

import inspect
import re
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Header, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel

from exclave.control.deps import Deps
from exclave.control.idempotency import Reply, answer_once

Model = TypeVar("Model", bound=BaseModel)
Endpoint = Callable[..., Coroutine[Any, Any, Model]]
_HEADER = "Idempotency-Key"
_PATTERN = r"^[!-~]{1,128}$"
_KEY = re.compile(_PATTERN)
_KeyOf = Annotated[
    str | None,
    Header(
        alias=_HEADER,
        pattern=_PATTERN,
        description="Repeat a request under the same key, and it is carried out once.",
    ),
]


@dataclass(frozen=True, slots=True)
class KeyedRequest:
    """A request with its key, if it has one, and the status of a reply that succeeds."""

    request: Request
    key: str | None
    status: int


def idempotent(
    *, secret: bool = False
) -> Callable[[Callable[..., Awaitable[Model]]], Endpoint[Model]]:
    """Accept an Idempotency-Key: a repeated request gets the reply of the first one.

    The route is written like any other, with `user`, `deps` and, if it has one, `body`. Under a
    key it gets `deps` whose first write spends the key. A `secret` reply is sent once and not
    stored.
    """

    def decorate(endpoint: Callable[..., Awaitable[Model]]) -> Endpoint[Model]:
        signature = inspect.signature(endpoint, eval_str=True)
        model: type[Model] = signature.return_annotation

        @wraps(endpoint)
        async def answer(*, keyed: KeyedRequest, **arguments: Any) -> Model:
            if keyed.key is None:
                return await endpoint(**arguments)

            async def run(deps: Deps) -> Reply:
                reply = await endpoint(**{**arguments, "deps": deps})
                return keyed.status, reply.model_dump(mode="json")

            deps, user, body = arguments["deps"], arguments["user"], arguments.get("body")
            request = _describe(keyed.request, body)
            _, stored = await answer_once(deps, user, keyed.key, request, run, keep=not secret)
            return model.model_validate(stored)

        answer.__signature__ = _add_header(signature)  # type: ignore[attr-defined]
        return answer

    return decorate


def read_keyed(request: Request, status: int) -> KeyedRequest:
    """Return what FastAPI injects into an idempotent route, for a bare route."""
    key = request.headers.get(_HEADER)
    if key is not None and not _KEY.fullmatch(key):
        message = f"String should match pattern '{_PATTERN}'"
        where = ("header", _HEADER)
        raise RequestValidationError(
            [{"type": "string_pattern_mismatch", "loc": where, "msg": message}]
        )
    return KeyedRequest(request, key, status)


async def _inject_keyed(request: Request, key: _KeyOf = None) -> KeyedRequest:
    status = getattr(request.scope.get("route"), "status_code", None) or 200
    return KeyedRequest(request, key, status)


def _add_header(signature: inspect.Signature) -> inspect.Signature:
    """Return what FastAPI reads of an idempotent route: the header is one more parameter."""
    keyed = inspect.Parameter(
        "keyed",
        inspect.Parameter.KEYWORD_ONLY,
        annotation=Annotated[KeyedRequest, Depends(_inject_keyed)],
    )
    return signature.replace(parameters=[*signature.parameters.values(), keyed])


def _describe(request: Request, body: BaseModel | None) -> object:
    content = None if body is None else body.model_dump(mode="json")
    return [request.method, request.url.path, content]
