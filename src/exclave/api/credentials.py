"""Authentication of requests by a bearer token in the Authorization header."""

import re
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from starlette.types import Scope

from exclave.api.rates import charge_runner, charge_user, is_vital
from exclave.api.space import refuse_large
from exclave.base.errors import Unauthenticated
from exclave.control.access import authenticate_runner, authenticate_user
from exclave.control.deps import Deps
from exclave.domain.identity import RunnerIdentity, User

WHO = "exclave.who"
"""The key of the caller's ids in the request's scope, for the access log."""

_TOKEN = re.compile(r"[A-Za-z0-9_]{1,128}")
_api_token = HTTPBearer(
    auto_error=False, scheme_name="ApiToken", description="An API token, `xcl_…`."
)
_access_token = HTTPBearer(
    auto_error=False, scheme_name="AccessToken", description="A runner's access token, `xcr_…`."
)


def read_bearer(request: Request) -> str:
    """Return the bearer token of a request."""
    sent = request.headers.getlist("authorization")
    scheme, _, token = sent[0].partition(" ") if len(sent) == 1 else ("", "", "")
    if scheme.lower() != "bearer" or not _TOKEN.fullmatch(token):
        raise Unauthenticated("no bearer token was sent")
    return token


async def admit_user(deps: Deps, request: Request) -> User:
    """Authenticate a user of the Control API."""
    user = await authenticate_user(deps, read_bearer(request))
    request.scope[WHO] = {"org": user.org, "account": user.account, "token": user.token}
    deps.held_by_users.enter(user.org)
    request.state.user = user
    charge_user(deps, user, request.scope)
    refuse_large(deps, request)
    return user


async def admit_runner(deps: Deps, request: Request) -> RunnerIdentity:
    """Authenticate a runner."""
    return note_runner(deps, request, await authenticate_runner(deps, read_bearer(request)))


def note_runner(deps: Deps, request: Request, who: RunnerIdentity) -> RunnerIdentity:
    """Record the runner in the scope of the request, and charge its rate limit."""
    request.scope[WHO] = {"org": who.org, "runner": who.runner}
    deps.held_by_runners.enter(who.org, is_vital=is_vital(request.scope))
    request.state.runner = who
    charge_runner(deps, who, request.scope)
    return who


def release(deps: Deps, scope: Scope) -> None:
    """Stop counting the request of an admitted caller: it no longer occupies a connection."""
    who = scope.get(WHO)
    if who is not None:
        held = deps.held_by_users if "account" in who else deps.held_by_runners
        held.leave(who["org"])


async def _find_deps(request: Request) -> Deps:
    deps: Deps = request.app.state.deps
    return deps


async def _find_user(request: Request, _: Annotated[object, Depends(_api_token)]) -> User:
    user: User = request.state.user
    return user


async def _find_runner(
    request: Request, _: Annotated[object, Depends(_access_token)]
) -> RunnerIdentity:
    runner: RunnerIdentity = request.state.runner
    return runner


DepsOf = Annotated[Deps, Depends(_find_deps)]
UserOf = Annotated[User, Depends(_find_user)]
RunnerOf = Annotated[RunnerIdentity, Depends(_find_runner)]
