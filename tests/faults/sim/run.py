"""Runs one seed: two installs, their runners, people and faults, on virtual time."""

import asyncio
import logging
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from exclave.control import chores
from exclave.runner.data_folder import DataFolder
from tests.faults.sim.checks import check_audits, check_logs, check_rest, check_results
from tests.faults.sim.control import SWEEP_S, SimControl
from tests.faults.sim.ledger import Cloud, Ledger
from tests.faults.sim.machine import Machine
from tests.faults.sim.mix import Mix, draw_mix
from tests.faults.sim.nemesis import Nemesis
from tests.faults.sim.network import Network
from tests.faults.sim.people import People
from tests.support.virtual_time import run_virtual

BOUND_S = 2 * 3600.0
"""Everything has ended this long after the last fault, a person's retries included."""
_LOOK_EVERY_S = 30.0
_MEMORY = Path("/dev/shm")  # noqa: S108 - only faster; any other place will do


@dataclass(frozen=True, slots=True)
class Report:
    """What became of a seed."""

    seed: int
    broken: tuple[str, ...]
    digest: str
    counts: Counter[str]
    virtual_s: float
    lines: tuple[str, ...]

    def explain(self) -> str:
        """Say what broke, and how to see it again."""
        return (
            f"SEED={self.seed} broke {len(self.broken)}: {self.broken[:5]}\n"
            f"reproduce: python -m tests.faults.sim --start {self.seed} --seeds 1 --verbose"
        )


class World:
    """Everything of one seed."""

    def __init__(self, seed: int, folder: Path, mix: Mix | None = None, keep: int = 400) -> None:
        random = Random(seed)
        self.mix = draw_mix(random) if mix is None else mix
        self.folder = folder
        self.ledger = Ledger(keep=keep)
        self.cloud = Cloud(self.ledger)
        self.control = SimControl(random.getrandbits(32), self.ledger, self.cloud)
        self.network = Network(Random(seed + 1), self.mix, self.control, self.ledger)
        self.people = People(self.control, self.mix, Random(seed + 2), self.ledger, self.cloud)
        self.machines: list[Machine] = []
        self.nemesis = Nemesis(
            self.mix,
            Random(seed + 3),
            self.machines,
            self.control,
            self.ledger,
            self.replace,
            self.take_away,
        )
        self._random = random
        self._tasks: list[asyncio.Task[Any]] = []
        self._replaced: dict[str, None] = {}

    async def begin(self) -> None:
        """Set everything up and let it run."""
        self.control.start()
        assert self.control.deps is not None
        await self.people.set_up(self.control.deps)
        for queue, count in zip(self.people.queues, self.mix.runners, strict=True):
            for _ in range(count):
                await self.add_machine(queue)

    async def add_machine(self, queue: Any) -> Machine:
        """Enrol a new machine, and start its runner."""
        token = await self.people.enrol(queue)
        name = f"machine-{len(self.machines)}"
        machine = Machine(
            name,
            queue,
            self.folder / name,
            token,
            network=self.network,
            cloud=self.cloud,
            ledger=self.ledger,
            mix=self.mix,
            random=Random(self._random.getrandbits(32)),
        )
        machine.healed = self.network.healed
        self.machines.append(machine)
        machine.boot()
        return machine

    def replace(self, machine: Machine) -> None:
        """Put a new machine in the place of one that is gone for good."""
        if machine.name not in self._replaced:
            self._replaced[machine.name] = None
            self.spawn(self.add_machine(machine.queue))

    def take_away(self, machine: Machine) -> None:
        """Let a person take a machine's identity away, and put another one in its place."""
        self.spawn(self._take_away(machine))

    async def _take_away(self, machine: Machine) -> None:
        if await self.people.revoke(machine.folder):
            machine.removed = True
            self.ledger.trace("removed", machine.name)
            self.replace(machine)

    def spawn(self, work: Any) -> None:
        """Run something beside."""
        self._tasks.append(asyncio.ensure_future(work))

    async def cancel_now_and_then(self) -> None:
        """Let people change their minds."""
        while self.mix.cancel_every_s is not None:
            await asyncio.sleep(self._random.expovariate(1 / self.mix.cancel_every_s))
            await self.people.cancel_something()

    async def live(self) -> None:
        """Safety first: anything may fail. Then liveness: all is healed, and all must end."""
        await self.begin()
        self.spawn(self.people.order_all())
        self.spawn(self.people.care())
        self.nemesis.begin()
        cancelling = asyncio.ensure_future(self.cancel_now_and_then())
        await asyncio.sleep(self.mix.heal_at_s)
        cancelling.cancel()
        self.network.healed = True
        self.nemesis.stop()
        self.ledger.trace("healed")
        await self.settle()

    async def settle(self) -> None:
        """Wait until everything has ended, then check it all."""
        until = asyncio.get_running_loop().time() + BOUND_S
        while asyncio.get_running_loop().time() < until:
            if self._is_settled():
                break
            await asyncio.sleep(_LOOK_EVERY_S)
        self._check_outboxes()
        check_rest(self.control, self.cloud, self.ledger)
        kept = [name for one in self.machines if not one.is_lost for name in one.kept]
        check_results(self.control, kept, self.ledger)
        written = {name: data for one in self.machines for name, data in one.spools.items()}
        await check_logs(self.control, written, self.ledger)
        check_audits([one.folder for one in self.machines], self.cloud, self.ledger)

    def sum_up(self, seed: int) -> Report:
        """Tell what became of it all."""
        ledger, now = self.ledger, asyncio.get_running_loop().time()
        lines = tuple(ledger.lines)
        return Report(seed, tuple(ledger.broken), ledger.digest, ledger.counts, now, lines)

    async def end(self) -> None:
        """Stop everything that still goes on, then close the database."""
        self.control.kill()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        self.control.close()

    def _is_settled(self) -> bool:
        return self.people.is_satisfied() and not any(
            any((one.folder / "outbox").glob("*.json"))
            or any((one.folder / "executions").iterdir())
            for one in self.machines
            if one.is_up and not one.is_lost and (one.folder / "executions").exists()
        )

    def _check_outboxes(self) -> None:
        for machine in self.machines:
            left = sorted((machine.folder / "outbox").glob("*.json")) if not machine.is_lost else ()
            for file in left:
                self.ledger.report("I7", "result never handed in", machine.name, file.name)


def run_seed(seed: int, mix: Mix | None = None, *, keep: int = 400) -> Report:
    """Run one seed and tell what became of it."""
    place = _MEMORY if _MEMORY.is_dir() else None
    folder = Path(tempfile.mkdtemp(prefix="sim-", dir=place))

    async def main() -> Report:
        world = World(seed, folder, mix, keep)
        with fragile_disks(world.machines), quiet():
            try:
                await world.live()
                return world.sum_up(seed)
            finally:
                await world.end()

    try:
        return run_virtual(main())
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def fragile_disks(machines: list[Machine]) -> Iterator[None]:
    """Let processes die at their writes."""
    originals = {name: getattr(DataFolder, name) for name in ("write", "remove", "make_execution")}

    def wrap(original: Any) -> Any:
        def fragile(disk: DataFolder, *args: Any) -> Any:
            machine = next((one for one in machines if disk.path == one.folder), None)
            if machine is None:
                return original(disk, *args)
            machine.may_write()
            if original is not originals["remove"]:
                machine.check_room()
            result = original(disk, *args)
            machine.note_write(*args)
            machine.may_write()
            return result

        return fragile

    for name, original in originals.items():
        setattr(DataFolder, name, wrap(original))
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(DataFolder, name, original)


@contextmanager
def quiet() -> Iterator[None]:
    """Leave out what only costs time: logs that nobody reads, and sweeps every 5 s."""
    pace, chores.PACE_S = chores.PACE_S, SWEEP_S
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        chores.PACE_S = pace
        logging.disable(level)
