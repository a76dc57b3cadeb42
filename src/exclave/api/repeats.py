"""The Idempotency-Key header of POST requests."""

import re
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

from fastapi import Depends, Header, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel

from exclave.api.credentials import DepsOf, UserOf
from exclave.control.deps import Deps
from exclave.control.idempotency import Reply, answer_once
from exclave.domain.identity import User

Model = TypeVar("Model", bound=BaseModel)
_HEADER = "Idempotency-Key"
_PATTERN = r"^[!-~]{1,128}$"
_KEY = re.compile(_PATTERN)
KeyOf = Annotated[
    str | None,
    Header(
        alias=_HEADER,
        pattern=_PATTERN,
        description="Repeat a request under the same key, and it is carried out once.",
    ),
]


class Once:
    """Runs a use case, or returns its stored reply if the same key was sent before."""

    def __init__(
        self, deps: Deps, user: User, request: Request, key: str | None, status: int
    ) -> None:
        self._deps = deps
        self._user = user
        self._request = request
        self._key = key
        self._status = status

    async def __call__(
        self,
        model: type[Model],
        body: BaseModel | None,
        run: Callable[[Deps], Awaitable[Model]],
        *,
        secret: bool = False,
    ) -> Model:
        """Return the reply of `run`. A `secret` reply is returned once and not stored."""
        if self._key is None:
            return await run(self._deps)

        async def run_and_dump(deps: Deps) -> Reply:
            return self._status, (await run(deps)).model_dump(mode="json")

        _, reply = await answer_once(
            self._deps, self._user, self._key, self._describe(body), run_and_dump, keep=not secret
        )
        return model.model_validate(reply)

    def _describe(self, body: BaseModel | None) -> object:
        content = None if body is None else body.model_dump(mode="json")
        return [self._request.method, self._request.url.path, content]


def make_once(deps: Deps, user: User, request: Request, status: int) -> Once:
    """Return what `OnceOf` injects, for a bare route."""
    key = request.headers.get(_HEADER)
    if key is not None and not _KEY.fullmatch(key):
        message = f"String should match pattern '{_PATTERN}'"
        where = ("header", _HEADER)
        raise RequestValidationError(
            [{"type": "string_pattern_mismatch", "loc": where, "msg": message}]
        )
    return Once(deps, user, request, key, status)


async def _make_once(request: Request, deps: DepsOf, user: UserOf, key: KeyOf = None) -> Once:
    status = getattr(request.scope.get("route"), "status_code", None) or 200
    return Once(deps, user, request, key, status)


OnceOf = Annotated[Once, Depends(_make_once)]
