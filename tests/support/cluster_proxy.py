"""A proxy before the test cluster that answers some requests itself, or lets them wait."""

import asyncio
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.support.kubernetes import Cluster

METHODS = ["GET", "PATCH", "POST", "PUT", "DELETE"]
KEPT = ("content-type", "accept")
Rule = Callable[[Request], Awaitable[Response | None]]
"""Returns an answer in place of the cluster's, or None to let the request pass."""
KUBECONFIG = """apiVersion: v1
kind: Config
current-context: bed
contexts: [{{name: bed, context: {{cluster: bed, user: bed}}}}]
clusters: [{{name: bed, cluster: {{server: "{server}"}}}}]
users: [{{name: bed, user: {{token: "{token}"}}}}]
"""


class ClusterProxy:
    """Passes requests on as the administrator's, except those that its rule answers."""

    def __init__(self, cluster: Cluster, rule: Rule) -> None:
        self.rule = rule
        self._client = httpx.AsyncClient(
            base_url=cluster.server,
            headers={"Authorization": f"Bearer {cluster.token}"},
            verify=ssl.create_default_context(cadata=cluster.ca),
            trust_env=False,
            timeout=httpx.Timeout(10, read=None),
        )

    async def answer(self, request: Request) -> Response:
        """Answer a request by rule, or as the cluster does."""
        body = await request.body()
        ruled = await self.rule(request)
        if ruled is not None:
            return ruled
        headers = {name: request.headers[name] for name in KEPT if name in request.headers}
        target = f"{request.url.path}?{request.url.query}"
        asked = self._client.build_request(request.method, target, headers=headers, content=body)
        reply = await self._client.send(asked, stream=True)
        kind = {"Content-Type": reply.headers.get("content-type", "application/json")}
        done = BackgroundTask(reply.aclose)
        return StreamingResponse(reply.aiter_bytes(), reply.status_code, kind, background=done)

    async def close(self) -> None:
        """End all connections to the cluster."""
        await self._client.aclose()


def refuse(code: int, message: str, reason: str = "Fault") -> Response:
    """Return a refusal as an API server words it; it may be tried again at once."""
    kind = {"apiVersion": "v1", "kind": "Status", "status": "Failure"}
    status = {**kind, "code": code, "reason": reason, "message": message}
    return JSONResponse(status, code, {"Retry-After": "0"})


@asynccontextmanager
async def serve_proxy(proxy: ClusterProxy) -> AsyncIterator[str]:
    """Run the proxy and lend its address."""
    app = Starlette(routes=[Route("/{path:path}", proxy.answer, methods=METHODS)])
    config = uvicorn.Config(app, port=0, log_level="error", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    async with asyncio.timeout(10):
        while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await task
        await proxy.close()


@contextmanager
def run_proxy(cluster: Cluster, rule: Rule, folder: Path) -> Iterator[Path]:
    """Run a proxy in a thread of its own, and lend a kubeconfig that leads to it."""
    started, ended = threading.Event(), threading.Event()
    file = folder / "proxied-kubeconfig"

    async def work() -> None:
        async with serve_proxy(ClusterProxy(cluster, rule)) as server:
            file.write_text(KUBECONFIG.format(server=server, token=cluster.token))
            started.set()
            await asyncio.to_thread(ended.wait)

    thread = threading.Thread(target=asyncio.run, args=(work(),), daemon=True)
    thread.start()
    assert started.wait(30), "the proxy did not start"
    try:
        yield file
    finally:
        ended.set()
        thread.join(10)
