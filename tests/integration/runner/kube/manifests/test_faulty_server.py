"""An API server that is overloaded, restarts and forgets: deploys succeed all the same."""

import asyncio
import itertools
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.integration.runner.kube.manifests.objects import config_map, deployment, write
from tests.support.kubernetes import Cluster
from tests.support.manifests import ManifestHarness

METHODS = ["GET", "PATCH", "POST", "PUT", "DELETE"]
EVERY = 5


class FaultyProxy:
    """Stands before the cluster and answers every fifth request itself."""

    def __init__(self, cluster: Cluster, code: int) -> None:
        self.code = code
        self.faults = 0
        self._numbers = itertools.count(1)
        self._client = httpx.AsyncClient(
            base_url=cluster.server,
            verify=ssl.create_default_context(cadata=cluster.ca),
            trust_env=False,
            timeout=httpx.Timeout(10, read=None),
        )

    async def answer(self, request: Request) -> Response:
        is_watch = request.query_params.get("watch") == "1"
        wants_fault = next(self._numbers) % EVERY == 0 and (is_watch or self.code != 410)
        if wants_fault:
            self.faults += 1
            status = {"kind": "Status", "code": self.code, "reason": "Fault", "message": "a test"}
            return JSONResponse(status, self.code, {"Retry-After": "0"})
        kept = ("authorization", "content-type", "accept")
        headers = {name: request.headers[name] for name in kept if name in request.headers}
        forwarded = self._client.build_request(
            request.method,
            f"{request.url.path}?{request.url.query}",
            headers=headers,
            content=await request.body(),
        )
        reply = await self._client.send(forwarded, stream=True)
        kind = reply.headers.get("content-type", "application/json")
        headers = {"Content-Type": kind}
        return StreamingResponse(
            reply.aiter_bytes(), reply.status_code, headers, background=BackgroundTask(reply.aclose)
        )

    async def close(self) -> None:
        """End all connections to the cluster."""
        await self._client.aclose()


@asynccontextmanager
async def serve(proxy: FaultyProxy) -> AsyncIterator[str]:
    app = Starlette(routes=[Route("/{path:path}", proxy.answer, methods=METHODS)])
    config = uvicorn.Config(app, port=0, log_level="error", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    async with asyncio.timeout(10):
        while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    await task
    await proxy.close()


@pytest.mark.parametrize("code", [429, 503, 410])
async def test_a_deploy_survives_a_server_that_refuses_every_fifth_request(
    bench: ManifestHarness, code: int
) -> None:
    proxy = FaultyProxy(bench.cluster, code)
    objects = [config_map(f"c{number}", v="1") for number in range(10)]

    async with serve(proxy) as address:
        bench.server = address
        first = await bench.deploy(write(*objects, deployment("web", replicas=2)))
        second = await bench.plan(write(*objects, deployment("web", replicas=2)))

    assert (first.outcome.state, first.outcome.message) == ("succeeded", "")
    assert second.outputs["noop"] is True
    assert proxy.faults > 0 or code == 410
