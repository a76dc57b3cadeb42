"""Authentication of registry clients: by bearer token, or by a password that is one."""

import base64
import binascii
import re
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from exclave.base.errors import Unauthenticated
from exclave.control.deps import Deps
from exclave.control.registry.access import USERNAME, Admitted, authenticate_client
from exclave.domain.registry import RegistryScope
from exclave.registry.bodies import read_small

WHO = "exclave.who"
"""The key of the caller's ids in the request's scope, for the access log."""

_TOKEN = re.compile(r"[A-Za-z0-9_]{1,128}")
_MAX_FORM = 16 << 10


def deps_of(request: Request) -> Deps:
    """Return the dependencies of the app."""
    deps: Deps = request.app.state.deps
    return deps


async def admit(request: Request) -> RegistryScope:
    """Authenticate the caller and return its scope."""
    kind, value = _read_header(request)
    token = value if kind == "bearer" else _read_password(kind, value)
    return (await _authenticate(request, token)).scope


async def issue_token(request: Request) -> Response:
    """Return the bearer token for a client that logged in with a password.

    It is the password itself: a registry token is short-lived and has a narrow scope already.
    """
    kind, value = _read_header(request)
    token = await _read_form(request) if request.method == "POST" else _read_password(kind, value)
    admitted = await _authenticate(request, token)
    now = deps_of(request).clock.now()
    return JSONResponse(
        {
            "token": token,
            "access_token": token,
            "expires_in": max(1, int((admitted.expires_at - now).total_seconds())),
            "issued_at": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
    )


async def _authenticate(request: Request, token: str) -> Admitted:
    if not _TOKEN.fullmatch(token):
        raise Unauthenticated("no credential was sent")
    deps = deps_of(request)
    admitted = await authenticate_client(deps, token)
    request.scope[WHO] = {"org": admitted.scope.org, "client": admitted.scope.by}
    deps.held_by_runners.enter(admitted.scope.org)
    limit = deps.rates.limits.org
    deps.rates.spend("registry", admitted.scope.org, deps.clock.monotonic(), limit)
    await deps.loop_shares.enter(admitted.scope.org, name_kind(request.method), is_held=True)
    return admitted


def name_kind(method: str) -> str:
    """Return the kind of request under which loop time is charged."""
    return f"registry {method}"


def _read_header(request: Request) -> tuple[str, str]:
    sent = request.headers.getlist("authorization")
    kind, _, value = sent[0].partition(" ") if len(sent) == 1 else ("", "", "")
    return kind.lower(), value


def _read_password(kind: str, value: str) -> str:
    try:
        decoded = base64.b64decode(value, validate=True).decode() if kind == "basic" else ""
    except (binascii.Error, UnicodeDecodeError):
        decoded = ""
    username, _, password = decoded.partition(":")
    return password if username == USERNAME else ""


async def _read_form(request: Request) -> str:
    form = parse_qs((await read_small(request, _MAX_FORM)).decode(errors="replace"))
    named = form.get("username", [""])[0] == USERNAME
    return form.get("password", [""])[0] if named else ""
