"""Charts on an API server that is overloaded now and then."""

import itertools

import pytest
from starlette.requests import Request
from starlette.responses import Response

from exclave.wire.jobs import OutcomeState
from tests.support.cluster_proxy import ClusterProxy, refuse, serve_proxy
from tests.support.helm import HelmHarness

EVERY = 7


@pytest.mark.parametrize("code", [429, 503])
async def test_a_release_survives_a_server_that_refuses_every_seventh_request(
    bench: HelmHarness, code: int
) -> None:
    numbers = itertools.count(1)

    async def refuse_some(request: Request) -> Response | None:
        del request
        return None if next(numbers) % EVERY else refuse(code, "a test")

    async with serve_proxy(ClusterProxy(bench.cluster, refuse_some)) as address:
        bench.server = address
        first = await bench.deploy(sets={"extra": "true"})
        second = await bench.deploy()
        removed = await bench.deploy(destroy=True)

    for ran in (first, second, removed):
        assert ran.outcome.state is OutcomeState.SUCCEEDED, ran.text
    assert not bench.has("configmaps/web-settings")
