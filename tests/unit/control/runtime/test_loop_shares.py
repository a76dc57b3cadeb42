"""An org whose requests hold the loop for long waits for others, with those requests only."""

import asyncio

import pytest

from exclave.base.loop_time import note_step
from exclave.control.runtime import loop_shares
from exclave.control.runtime.loop_shares import (
    BODY_S_PER_BYTE,
    LONGEST_WAIT_S,
    RESERVE_S,
    SHARE,
    SMALL_BODY,
    LoopShares,
)
from exclave.control.runtime.request_slots import Busy, RequestSlots


class Server:
    """Shares of a loop on which the orgs `a` and `b` are active; nobody really sleeps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.turns = RequestSlots(8)
        self.shares = LoopShares(self.turns, self.sleep)
        self.slept: list[float] = []
        monkeypatch.setattr(loop_shares, "_now", lambda: self.now)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)

    async def ask(self, org: str, kind: str, cost_s: float) -> None:
        async def work() -> None:
            note_step(cost_s)

        async with self.turns.hold(org):
            pass
        await self.shares.run(org, kind, work)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    return Server(monkeypatch)


async def test_an_org_that_spent_its_reserve_waits_until_its_share_has_made_up_for_it(
    server: Server,
) -> None:
    await server.ask("b", "whoami", 0.0)
    await server.ask("a", "huge", RESERVE_S + 0.1)

    await server.ask("a", "huge", 0.1)

    assert sum(server.slept) == pytest.approx(0.1 / SHARE, rel=0.01)


async def test_its_other_requests_and_other_orgs_do_not_wait(server: Server) -> None:
    await server.ask("a", "huge", RESERVE_S + 0.1)

    await server.ask("a", "whoami", 0.0)
    await server.ask("b", "huge", 0.1)

    assert server.slept == []


async def test_an_org_that_is_alone_does_not_wait(server: Server) -> None:
    await server.ask("a", "huge", RESERVE_S + 0.1)
    await server.ask("a", "huge", 1.0)

    assert server.slept == []


async def test_what_would_wait_too_long_is_refused(server: Server) -> None:
    await server.ask("b", "whoami", 0.0)
    await server.ask("a", "huge", RESERVE_S + 2 * LONGEST_WAIT_S * SHARE)

    with pytest.raises(Busy) as refused:
        await server.ask("a", "huge", 0.1)

    assert int(str(refused.value.facts["retry_after_s"])) > LONGEST_WAIT_S


async def test_a_kind_of_request_that_became_short_is_free_again(server: Server) -> None:
    await server.ask("b", "whoami", 0.0)
    await server.ask("a", "usual", 0.004)
    for _ in range(5):
        await server.ask("a", "usual", 0.0)
    await server.ask("a", "huge", RESERVE_S + 0.1)

    await server.ask("a", "usual", 0.0)

    assert server.slept == []


async def test_requests_that_arrive_together_do_not_all_find_the_same_time_left(
    server: Server,
) -> None:
    await server.ask("b", "whoami", 0.0)
    await server.ask("a", "huge", RESERVE_S / 2)

    await asyncio.gather(*[server.ask("a", "huge", RESERVE_S / 2) for _ in range(4)])

    assert sum(server.slept) == pytest.approx(RESERVE_S / SHARE, rel=0.01)


async def test_a_request_that_is_held_open_is_charged_only_when_it_ends(server: Server) -> None:
    await server.ask("b", "whoami", 0.0)
    await server.ask("a", "poll", RESERVE_S / 2)

    for _ in range(10):
        await server.shares.enter("a", "poll", is_held=True)

    assert server.slept == []


async def test_each_byte_of_a_large_body_costs(server: Server) -> None:
    async def work() -> None:
        await asyncio.sleep(0)

    large = SMALL_BODY + int(1.5 * RESERVE_S / BODY_S_PER_BYTE)
    await server.ask("b", "whoami", 0.0)
    await server.shares.run("a", "upload", work, body=SMALL_BODY)
    await server.shares.run("a", "upload", work, body=large)

    await server.shares.enter("a", "upload")

    assert sum(server.slept) == pytest.approx(RESERVE_S / 2 / SHARE, rel=0.01)
