"""The runner's loop: a job runs once and its result arrives, whatever replies are lost."""

import asyncio
from pathlib import Path

from exclave.client.problems import Unreachable
from exclave.wire.jobs import OutcomeState, Reason
from exclave.wire.runner import Poll, PollReply
from tests.unit.runner.fake_control import FakeControl
from tests.unit.runner.harness import RunnerHarness, expect, run_scenario


def test_a_job_runs_once_and_its_result_arrives(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        runner, task = house.start()
        name = house.control.add_job()
        await house.clock.sleep(5)
        await house.stop(runner, task)

        expect(house.control.result_of(name), OutcomeState.SUCCEEDED, Reason.COMPLETED)
        assert house.executor.runs == {name: 1}
        assert list((house.config.data / "executions").iterdir()) == []
        assert list((house.config.data / "outbox").iterdir()) == []

    house = run_scenario(tmp_path, scenario)

    assert house.audit_events() == [
        "started",
        "enrolled",
        "envelope_accepted",
        "job_started",
        "job_ended",
        "result_acknowledged",
        "stopped",
    ]


def test_a_lost_poll_reply_gives_the_same_offers_and_no_second_run(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        house.control.lose_replies["poll"] = 2
        names = [house.control.add_job() for _ in range(3)]
        runner, task = house.start()
        await house.clock.sleep(60)
        await house.stop(runner, task)

        nonces = [poll.nonce for poll in house.control.polls[:3]]
        assert nonces[0] == nonces[1] == nonces[2]
        assert house.control.polls[3].nonce != nonces[0]
        assert house.executor.runs == dict.fromkeys(names, 1)

    run_scenario(tmp_path, scenario)


def test_every_reply_lost_once_runs_and_reports_once(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        runner, task = house.start()
        await house.clock.sleep(1)
        for call in ("poll", "start", "renew", "hand_in", "ask_token"):
            house.control.lose_replies[call] = 1
        name = house.control.add_job(mutating=True)
        await house.clock.sleep(120)
        await house.stop(runner, task)

        assert house.executor.runs == {name: 1}
        assert house.control.executions[name].results == [house.control.result_of(name)]
        assert not house.control.executions[name].lost_by_proof

    run_scenario(tmp_path, scenario)


def test_an_hour_without_control_plane_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        runner, task = house.start()
        name = house.control.add_job(mutating=True)
        await house.clock.sleep(3)
        house.control.down = True
        await house.clock.sleep(3600)
        assert house.control.result_of(name) is None
        house.control.down = False
        back_at = house.clock.monotonic()
        while house.control.result_of(name) is None and house.clock.monotonic() < back_at + 45:
            await house.clock.sleep(1)
        expect(house.control.result_of(name), OutcomeState.SUCCEEDED, Reason.COMPLETED)
        await house.clock.sleep(60)
        await house.stop(runner, task)

        expect(house.control.result_of(name), OutcomeState.SUCCEEDED, Reason.COMPLETED)
        assert house.executor.runs == {name: 1}

    run_scenario(tmp_path, scenario, lasts_s=30.0)


def test_capacity_bounds_parallel_work_and_freed_slots_are_used_at_once(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        names = [house.control.add_job() for _ in range(6)]
        runner, task = house.start()
        await house.clock.sleep(1)
        assert len(house.executor.running) == 2
        await house.clock.sleep(35)
        await house.stop(runner, task)

        assert house.executor.runs == dict.fromkeys(names, 1)
        began = sorted(house.executor.began.values())
        assert began[2] - began[0] < 10.5
        assert began[4] - began[2] < 10.5

    run_scenario(tmp_path, scenario, capacity=2, lasts_s=10.0)


def test_a_full_disk_takes_no_work(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        house.free_bytes = 100
        runner, task = house.start()
        name = house.control.add_job()
        await house.clock.sleep(20)
        assert house.executor.runs == {}
        house.free_bytes = 1 << 40
        await house.clock.sleep(30)
        await house.stop(runner, task)

        assert house.executor.runs == {name: 1}

    run_scenario(tmp_path, scenario, keep_free_bytes=1000)


def test_request_numbers_grow_and_never_miss_a_living_execution(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        for call in ("poll", "start", "renew", "hand_in"):
            house.control.lose_replies[call] = 3
        runner, task = house.start()
        for _ in range(10):
            house.control.add_job(mutating=True)
            await house.clock.sleep(7)
        await house.clock.sleep(200)
        await house.stop(runner, task)

        numbers = [poll.no for poll in house.control.polls]
        assert numbers == sorted(set(numbers))
        assert not any(one.lost_by_proof for one in house.control.executions.values())
        assert all(len(one.results) == 1 for one in house.control.executions.values())

    run_scenario(tmp_path, scenario, lasts_s=3.0)


class CuttingProxy(FakeControl):
    """Lets no request live longer than ten seconds."""

    async def poll(self, token: str, request: Poll) -> PollReply:
        try:
            async with asyncio.timeout(10):
                return await super().poll(token, request)
        except TimeoutError as error:
            raise Unreachable("the connection was cut", cause="network") from error


def test_a_proxy_that_cuts_polls_makes_them_shorter(tmp_path: Path) -> None:
    async def scenario(house: RunnerHarness) -> None:
        house.control = CuttingProxy(house.clock)
        runner, task = house.start()
        await house.clock.sleep(120)
        await house.stop(runner, task)

        assert house.control.polls[0].max_hold_s == 600.0
        assert house.control.polls[-1].max_hold_s < 10.0

    run_scenario(tmp_path, scenario)


def test_the_same_seed_gives_the_same_trace(tmp_path: Path) -> None:
    def trace(folder: Path) -> list[object]:
        async def scenario(house: RunnerHarness) -> None:
            house.control.lose_replies.update({"poll": 2, "start": 1, "hand_in": 2, "renew": 4})
            runner, task = house.start()
            for _ in range(5):
                house.control.add_job()
                await house.clock.sleep(11)
            await house.stop(runner, task)

        house = run_scenario(folder, scenario)
        return [
            *house.control.polls,
            *house.control.renewals,
            (house.config.data / "audit.jsonl").read_bytes(),
        ]

    assert trace(tmp_path / "one") == trace(tmp_path / "two")
