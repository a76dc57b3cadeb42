"""Requests that stay open: an ASGI app driven by hand, so that a client can read on or hang up."""

import asyncio
import contextlib
from typing import Any
from urllib.parse import quote

from tests.integration.api.kit import Site


class LiveRequest:
    """One request; what was sent so far is in `body`. The body of one without content never arrives."""

    def __init__(self, app: Any, scope: dict[str, Any], content: bytes | None) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""
        self._changed = asyncio.Event()
        self._hung_up = asyncio.Event()
        self._content = content
        self._task = asyncio.create_task(app(scope, self._receive, self._send))

    async def read_until(self, text: str, times: int = 1) -> str:
        """Wait until the text has arrived so often."""
        async with asyncio.timeout(20):
            while self.body.count(text.encode()) < times and not self._task.done():
                self._changed.clear()
                changed = asyncio.create_task(self._changed.wait())
                await asyncio.wait({self._task, changed}, return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
        return self.body.decode()

    async def finish(self) -> str:
        """Wait until the app is done with it."""
        await asyncio.wait_for(self._task, 20)
        return self.body.decode()

    async def hang_up(self) -> None:
        """Close the connection and wait until the app has noticed."""
        self._hung_up.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait_for(self._task, 20)

    async def _receive(self) -> dict[str, Any]:
        if self._content is not None:
            content, self._content = self._content, None
            return {"type": "http.request", "body": content, "more_body": False}
        await self._hung_up.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {k.decode().lower(): v.decode() for k, v in message["headers"]}
        else:
            self.body += message.get("body", b"")
        self._changed.set()


def open_live(
    site: Site,
    method: str,
    path: str,
    *,
    app: str = "control",
    content: bytes | None = b"",
    **headers: str,
) -> LiveRequest:
    """Begin a request as the admin, or as the runner."""
    client = site.control if app == "control" else site.runner
    token = site.admin.token if app == "control" else site.enrolled.token
    sent = {"authorization": f"Bearer {token}", "content-type": "application/json", **headers}
    bare, _, query = path.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": bare,
        "raw_path": quote(bare).encode(),
        "query_string": query.encode(),
        "root_path": "",
        "server": ("exclave.test", 80),
        "client": ("127.0.0.1", 1),
        "state": {},
        "headers": [(k.replace("_", "-").encode(), v.encode()) for k, v in sent.items()],
    }
    return LiveRequest(client._transport.app, scope, content)  # type: ignore[attr-defined]
