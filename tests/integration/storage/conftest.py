"""Each database, with and without what opens it; SQLite is a file here."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from exclave.base.clock import SystemClock
from exclave.storage.engine.database import Database
from exclave.storage.engine.dialects import choose_dialect
from exclave.storage.engine.hub import Hub
from exclave.storage.migrate import upgrade
from tests.support.databases import NAMES, open_database


@pytest.fixture(params=NAMES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with open_database(request.param) as shared:
        yield f"sqlite:///{tmp_path / 'test.db'}" if request.param == "sqlite" else shared


@pytest.fixture
async def db(url: str) -> AsyncIterator[Database]:
    upgrade(url)
    hub = Hub()
    hub.attach(asyncio.get_running_loop())
    made = Database(choose_dialect(url), SystemClock(), hub, name="srv-1")
    yield made
    await asyncio.to_thread(made.close)
