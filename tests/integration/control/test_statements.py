"""How many statements the calls need that every job and every idle runner makes."""

import pytest

from exclave.control.workflows import workflows
from exclave.wire.workflows import NewWorkflow
from tests.integration.control.conftest import World
from tests.integration.control.exchanges_kit import Counter
from tests.support.world import job


async def test_a_job_needs_few_statements(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    await world.peer.poll()
    wish = NewWorkflow(name="one", queue_id=world.queue, steps=[job("work")])
    counter = Counter(monkeypatch)
    used: dict[str, int] = {}

    await workflows.begin_workflow(world.deps, world.user, wish)
    used["create"] = counter.take()
    (offer,) = (await world.peer.poll()).offers
    used["claim"] = counter.take()
    await world.peer.start(offer.execution_id, offer.epoch)
    used["start"] = counter.take()
    await world.peer.renew({offer.execution_id: offer.epoch})
    counter.take()
    await world.peer.hand_in(offer.execution_id, offer.epoch)
    used["hand in"] = counter.take()
    await world.peer.poll()
    used["idle poll"] = counter.take()
    await world.peer.renew()
    used["idle renewal"] = counter.take()

    most = {
        "create": 10,
        "claim": 10,
        "start": 2,
        "hand in": 10,
        "idle poll": 3,
        "idle renewal": 2,
    }
    assert all(used[call] <= most[call] for call in most), used


async def test_a_job_needs_few_exchanges(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """From PostgreSQL's first answer on: what is asked together is answered together."""
    await world.peer.poll()
    wish = NewWorkflow(name="one", queue_id=world.queue, steps=[job("work")])
    await workflows.begin_workflow(world.deps, world.user, wish)  # prepares the statements
    await world.peer.work()
    counter = Counter(monkeypatch)
    used: list[int] = []

    await workflows.begin_workflow(world.deps, world.user, wish)
    used.append(counter.exchanges)
    (offer,) = (await world.peer.poll()).offers
    used.append(counter.exchanges)
    await world.peer.start(offer.execution_id, offer.epoch)
    used.append(counter.exchanges)
    await world.peer.hand_in(offer.execution_id, offer.epoch)
    used.append(counter.exchanges)
    await world.peer.poll()
    used.append(counter.exchanges)

    each = [now - before for before, now in zip([0, *used], used, strict=False)]
    assert each in ([0] * 5, [2, 3, 3, 5, 2]), each
