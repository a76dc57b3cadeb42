"""How seldom an idle runner of a big fleet speaks, and when it speaks all the same."""

from pathlib import Path

from exclave.client.problems import Unreachable
from exclave.wire.runner import Poll, PollReply, Renew, RenewReply
from tests.unit.runner.fake_control import FakeControl
from tests.unit.runner.harness import RunnerHarness, run_scenario

HOUR = 3600.0


class BigFleet(FakeControl):
    """Holds polls for an hour, and asks for signs less often than that."""

    async def poll(self, token: str, request: Poll) -> PollReply:
        self.timings = self.timings.model_copy(update={"poll_hold_s": HOUR})
        reply = await super().poll(token, request)
        return reply.model_copy(update={"renew_s": 1.25 * HOUR})

    async def renew(self, token: str, request: Renew) -> RenewReply:
        reply = await super().renew(token, request)
        pace = self.timings.renew_s if request.executions else 1.25 * HOUR
        return reply.model_copy(update={"renew_s": pace})


class DeafToPolls(BigFleet):
    """Takes heartbeats, and no polls."""

    async def poll(self, token: str, request: Poll) -> PollReply:
        raise Unreachable("the connection was cut", cause="network")


def test_an_idle_runner_of_a_big_fleet_only_polls(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        house.control = BigFleet(house.clock)
        runner, task = house.start()
        await house.clock.sleep(10 * HOUR)

        assert [poll.max_hold_s for poll in house.control.polls[:3]] == [600.0, HOUR, HOUR]
        assert len(house.control.polls) <= 12
        assert len(house.control.renewals) == 1
        assert house.control.calls["ask_token"] <= len(house.control.polls) + 1
        assert house.control.calls["ask_nonce"] == 1
        assert all(poll.stats is not None for poll in house.control.polls)
        await house.stop(runner, task)

    run_scenario(tmp_path, scenario)


def test_work_brings_the_usual_pace_back_until_it_is_over(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        house.control = BigFleet(house.clock)
        house.executor.lasts_s = 60.0
        runner, task = house.start()
        await house.clock.sleep(2 * HOUR)
        before = len(house.control.renewals)
        house.control.add_job()
        await house.clock.sleep(HOUR)

        assert 10 <= len(house.control.renewals) - before <= 20
        await house.stop(runner, task)

    run_scenario(tmp_path, scenario)


def test_a_runner_whose_polls_fail_still_shows_that_it_is_there(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        house.control = DeafToPolls(house.clock)
        runner, task = house.start()
        await house.clock.sleep(10 * HOUR)

        assert len(house.control.renewals) >= 8
        await house.stop(runner, task)

    run_scenario(tmp_path, scenario)
