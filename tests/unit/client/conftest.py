"""The client of the control API, against prepared answers."""

from collections.abc import AsyncIterator

import pytest

from exclave.client.control import ControlClient
from exclave.client.control_http import ControlHttp
from tests.unit.cli.fake_control import TOKEN, URL, FakeControl


@pytest.fixture
def fake() -> FakeControl:
    return FakeControl()


@pytest.fixture
async def client(fake: FakeControl) -> AsyncIterator[ControlClient]:
    http = ControlHttp(URL, TOKEN, clock=fake.clock, ids=fake.ids, transport=fake.transport)
    async with ControlClient(http) as opened:
        yield opened
