"""The registry on each database; each test has an org of its own."""

from collections.abc import AsyncIterator, Iterator

import pytest

from exclave.control.deps import Deps
from tests.integration.api.kit import open_deps
from tests.integration.registry.kit import Hub, serve_hub
from tests.support.databases import NAMES


@pytest.fixture(params=NAMES, scope="module")
def shared_deps(request: pytest.FixtureRequest) -> Iterator[Deps]:
    with open_deps(request.param) as deps:
        yield deps


@pytest.fixture
async def hub(shared_deps: Deps) -> AsyncIterator[Hub]:
    async with serve_hub(shared_deps) as made:
        yield made
