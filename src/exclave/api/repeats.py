"""Idempotency-Key on POST: one way for all routes."""

from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

from fastapi import Depends, Header, Request
from pydantic import BaseModel

from exclave.api.credentials import DepsOf, UserOf
from exclave.control.deps import Deps
from exclave.control.repeats import Reply, answer_once
from exclave.domain.identity import User

Model = TypeVar("Model", bound=BaseModel)
KeyOf = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        pattern=r"^[!-~]{1,128}$",
        description="Repeat a request under the same key, and it is carried out once.",
    ),
]


class Once:
    """Runs a use case, or hands out what it answered when the same key was sent before."""

    def __init__(self, deps: Deps, user: User, request: Request, key: str | None) -> None:
        self._deps = deps
        self._user = user
        self._request = request
        self._key = key

    async def __call__(
        self,
        model: type[Model],
        wish: BaseModel | None,
        run: Callable[[Deps], Awaitable[Model]],
        *,
        secret: bool = False,
    ) -> Model:
        """Answer with a model. A `secret` answer is shown once and kept nowhere."""
        if self._key is None:
            return await run(self._deps)
        status = getattr(self._request.scope.get("route"), "status_code", None) or 200

        async def run_and_dump(deps: Deps) -> Reply:
            return status, (await run(deps)).model_dump(mode="json")

        _, body = await answer_once(
            self._deps, self._user, self._key, self._describe(wish), run_and_dump, keep=not secret
        )
        return model.model_validate(body)

    def _describe(self, wish: BaseModel | None) -> object:
        body = None if wish is None else wish.model_dump(mode="json")
        return [self._request.method, self._request.url.path, body]


async def _make_once(request: Request, deps: DepsOf, user: UserOf, key: KeyOf = None) -> Once:
    return Once(deps, user, request, key)


OnceOf = Annotated[Once, Depends(_make_once)]
