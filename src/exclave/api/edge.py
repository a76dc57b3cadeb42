"""The outermost layer of both APIs: request ids, headers, access log, metrics, last handler."""

from collections.abc import Sequence
from http import HTTPMethod

from starlette.requests import ClientDisconnect
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from exclave.api.bare import CLIENT_GONE, BareTable
from exclave.api.credentials import WHO, release
from exclave.api.metrics import Metrics, Visit
from exclave.api.problems import render_bug
from exclave.base.logs import Log, bind
from exclave.control.deps import Deps

log = Log("api")

_REQUEST_ID = b"x-request-id"
_HEADERS = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)
_QUIET = frozenset({"/healthz", "/readyz", "/metrics", "/v1/poll", "/v1/renew"})
"""Requested all the time: only failures are logged."""
_METHODS = frozenset(HTTPMethod)
_FAILED = 400


class Edge:
    """Wraps an app and answers every exception that it raises."""

    def __init__(
        self, app: ASGIApp, *, deps: Deps, metrics: Metrics, api: str, bare: Sequence[Route]
    ) -> None:
        self._app = app
        self._bare = BareTable(bare)
        self._deps = deps
        self._metrics = metrics
        self._api = api

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = self._deps.ids.new("req")
        began = self._deps.clock.monotonic()
        status = 0

        async def send_marked(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                _mark(message, request_id)
            await send(message)

        monotonic = self._deps.clock.monotonic
        with bind(request=request_id), self._metrics.loop.note(request_id, scope, monotonic):
            try:
                bare = self._bare.find(scope)
                serve = self._app if bare is None else bare.app
                await serve(scope, receive, send_marked)
            except ClientDisconnect:
                status = CLIENT_GONE
            except Exception as error:  # noqa: BLE001 - the edge of the request
                log.error(
                    "request_failed", exc=error, method=scope["method"], route=_find_route(scope)
                )
                if not status:
                    await render_bug(request_id)(scope, receive, send_marked)
            finally:
                release(self._deps, scope)
                self._note(scope, status or CLIENT_GONE, self._deps.clock.monotonic() - began)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = _find_route(scope)
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._metrics.note(Visit(self._api, method, route, status, seconds))
        if route not in _QUIET or status >= _FAILED:
            log.info(
                "request_answered",
                api=self._api,
                method=method,
                route=route,
                status=status,
                ms=round(seconds * 1000, 1),
                **scope.get(WHO, {}),
            )


def _find_route(scope: Scope) -> str:
    """Return the template of the route for logs; the path itself may hold a secret code."""
    return getattr(scope.get("route"), "path", "") or "unmatched"


def _mark(message: Message, request_id: str) -> None:
    own = [pair for pair in message.get("headers", ()) if pair[0] != _REQUEST_ID]
    named = {name for name, _ in own}
    ours = [pair for pair in _HEADERS if pair[0] not in named]
    message["headers"] = [*own, *ours, (_REQUEST_ID, request_id.encode())]
