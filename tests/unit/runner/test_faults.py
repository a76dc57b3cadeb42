"""A small storm over one runner; the large ones, with the real control plane, are in tests/faults."""

import asyncio
import random
from pathlib import Path

import pytest

from exclave.runner.runner import Runner
from exclave.wire.jobs import OutcomeState
from tests.support.virtual_time import run_virtual
from tests.unit.runner.harness import RunnerHarness


class Storm:
    """Random faults while jobs come in; then calm weather, in which everything must settle."""

    def __init__(self, house: RunnerHarness, seed: int) -> None:
        self.house = house
        self.random = random.Random(seed)
        self.runner: Runner | None = None
        self.task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        house, control = self.house, self.house.control
        self.runner, self.task = house.start()
        await house.clock.sleep(1)
        control.loss, control.slowest_s = 0.3 * self.random.random(), 3 * self.random.random()
        for _ in range(40):
            self._act()
            await self._maybe_restart()
            await house.clock.sleep(self.random.uniform(0, 60))
            self._check()
        control.loss, control.slowest_s, control.down = 0.0, 0.01, False
        await house.clock.sleep(2000)
        self._check()
        await house.stop(self.runner, self.task)

    def _act(self) -> None:
        control, dice = self.house.control, self.random.random()
        if dice < 0.5:
            control.add_job(mutating=self.random.random() < 0.5)
        elif dice < 0.6:
            control.down = not control.down
        elif dice < 0.7 and control.executions:
            self.random.choice(list(control.executions.values())).cancel = True
        elif dice < 0.75 and control.executions:
            self.random.choice(list(control.executions.values())).superseded = True

    async def _maybe_restart(self) -> None:
        assert self.task is not None
        if self.random.random() < 0.1:
            await self.house.crash(self.task)
            self.runner, self.task = self.house.start()

    def _check(self) -> None:
        """A proof of stop was true, and nothing ran twice."""
        assert self.task is not None
        if self.task.done():
            self.task.result()
        still_running = [
            one for one in self.house.control.proven if one in self.house.executor.running
        ]
        assert still_running == []
        assert all(count == 1 for count in self.house.executor.runs.values())


@pytest.mark.parametrize("seed", range(20))
def test_a_storm_runs_nothing_twice_and_loses_no_result(tmp_path: Path, seed: int) -> None:
    async def main() -> RunnerHarness:
        house = RunnerHarness(tmp_path, lasts_s=20.0)
        house.control = type(house.control)(house.clock, seed=seed % 200 + 1)
        await Storm(house, seed).run()
        return house

    house = run_virtual(main())

    for name, known in house.control.executions.items():
        assert known.state in {"ended", "withdrawn"} or known.superseded, name
        assert len(known.results) <= 1
        if known.superseded:
            continue
        if known.results and known.results[0].state is OutcomeState.SUCCEEDED:
            assert house.executor.runs[name] == 1
    assert list((house.config.data / "outbox").iterdir()) == []
    assert list((house.config.data / "executions").iterdir()) == []
    assert house.audit_events()[-1] == "stopped"
