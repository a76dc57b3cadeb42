"""An API server that is overloaded, restarts and forgets: deploys succeed all the same."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping

import pytest
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from exclave.runner.kube.api.connection import Connection
from tests.integration.runner.kube.manifests.objects import config_map, deployment, write
from tests.support.cluster_proxy import ClusterProxy, refuse, serve_proxy
from tests.support.manifests import ManifestHarness

EVERY = 5


class EveryFifth:
    """Refuses every fifth request; a forgotten place is something that only watches are told."""

    def __init__(self, code: int) -> None:
        self.code = code
        self.faults = 0
        self._numbers = itertools.count(1)

    async def __call__(self, request: Request) -> Response | None:
        is_watch = request.query_params.get("watch") == "1"
        if next(self._numbers) % EVERY or (self.code == 410 and not is_watch):
            return None
        self.faults += 1
        return refuse(self.code, "a test")


@pytest.mark.parametrize("code", [429, 503, 410])
async def test_a_deploy_survives_a_server_that_refuses_every_fifth_request(
    bench: ManifestHarness, code: int
) -> None:
    rule = EveryFifth(code)
    objects = [config_map(f"c{number}", v="1") for number in range(10)]

    async with serve_proxy(ClusterProxy(bench.cluster, rule)) as address:
        bench.server = address
        first = await bench.deploy(write(*objects, deployment("web", replicas=2)))
        second = await bench.plan(write(*objects, deployment("web", replicas=2)))

    assert (first.outcome.state, first.outcome.message) == ("succeeded", "")
    assert second.outputs["noop"] is True
    assert rule.faults > 0 or code == 410


class SilentWatches:
    """Lets the first watches connect and never sends them anything."""

    def __init__(self, count: int) -> None:
        self.count = count

    async def __call__(self, request: Request) -> Response | None:
        if request.query_params.get("watch") != "1" or not self.count:
            return None
        self.count -= 1
        return StreamingResponse(self._be_silent(), 200)

    async def _be_silent(self) -> AsyncIterator[bytes]:
        await asyncio.sleep(3600)
        yield b""


async def test_a_watch_that_falls_silent_is_opened_again(
    bench: ManifestHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exclave.runner.kube.api.watch._SILENCE_S", 0.5)
    rule = SilentWatches(4)

    async with serve_proxy(ClusterProxy(bench.cluster, rule)) as address:
        bench.server = address
        deployed = await bench.deploy(write(deployment("web", bed_delay="2")))

    assert (deployed.outcome.state, rule.count) == ("succeeded", 0)


class PassingTokens:
    """A credential whose token changes, and a server that knows only the newest one."""

    def __init__(self) -> None:
        self.known, self.held = "first", "first"
        self.refusals = 0

    async def read_headers(self) -> Mapping[str, str]:
        """Return the header with the token that the runner holds."""
        return {"Authorization": f"Bearer {self.held}"}

    async def renew(self) -> bool:
        """Return whether there was another token to take."""
        before, self.held = self.held, self.known
        return before != self.held

    async def __call__(self, request: Request) -> Response | None:
        if request.headers["authorization"] != f"Bearer {self.known}":
            self.refusals += 1
            return refuse(401, "Unauthorized", "Unauthorized")
        if request.query_params.get("watch") == "1" and self.known == "first":
            self.known = "second"
            return Response(b"", 200)
        return None


async def test_a_token_that_expires_in_mid_wait_is_renewed(bench: ManifestHarness) -> None:
    tokens = PassingTokens()

    async with serve_proxy(ClusterProxy(bench.cluster, tokens)) as address:
        bench.connection = Connection(address, None, tokens)
        deployed = await bench.deploy(write(deployment("web", bed_delay="1")))

    assert (deployed.outcome.state, deployed.outcome.message) == ("succeeded", "")
    assert tokens.refusals > 0
