"""A control plane behind both APIs, on each database."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio

from tests.integration.api.kit import Site, make_site, open_deps
from tests.support.databases import NAMES


@asynccontextmanager
async def open_site(name: str) -> AsyncIterator[Site]:
    with open_deps(name) as deps:
        made = await make_site(deps)
        async with made.control, made.runner:
            yield made


@pytest.fixture(params=NAMES)
async def site(request: pytest.FixtureRequest) -> AsyncIterator[Site]:
    async with open_site(request.param) as made:
        yield made


@pytest_asyncio.fixture(params=NAMES, scope="module", loop_scope="module")
async def shared_site(request: pytest.FixtureRequest) -> AsyncIterator[Site]:
    """One site for all tests of a module that leave each other alone."""
    async with open_site(request.param) as made:
        yield made
