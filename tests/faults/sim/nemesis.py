"""The nemesis: breaks things at random times until it is told to stop."""

import asyncio
from collections.abc import Callable
from random import Random

from tests.faults.sim.control import TIMINGS, SimControl
from tests.faults.sim.ledger import Ledger
from tests.faults.sim.machine import Machine
from tests.faults.sim.mix import Mix

_MARGIN_S = 15.0
_GONE_REPLACED_S = 120.0


class Nemesis:
    """One task per kind of fault, each at the pace that the mix sets."""

    def __init__(
        self,
        mix: Mix,
        random: Random,
        machines: list[Machine],
        control: SimControl,
        ledger: Ledger,
        replace: Callable[[Machine], None],
        take_away: Callable[[Machine], None],
    ) -> None:
        self._mix = mix
        self._random = random
        self._machines = machines
        self._control = control
        self._ledger = ledger
        self._replace = replace
        self._take_away = take_away
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self) -> None:
        """Begin to break things."""
        mix = self._mix
        for every, deed in (
            (mix.partition_every_s, self._cut),
            (mix.clog_every_s, self._clog),
            (mix.swizzle_every_s, self._swizzle),
            (mix.server_down_every_s, self._stop_server),
            (mix.crash_every_s, self._crash),
            (mix.freeze_every_s, self._freeze),
            (mix.full_every_s, self._fill),
            (mix.rotate_every_s, self._rotate),
            (mix.restore_every_s, self._restore),
            (mix.remove_every_s, self._remove),
        ):
            if every is not None:
                self._tasks.append(asyncio.ensure_future(self._repeat(every, deed)))

    def stop(self) -> None:
        """Break nothing more, and mend what is broken."""
        for task in self._tasks:
            task.cancel()
        self._control.start()
        for machine in list(self._machines):
            machine.heal()
            machine.boot()
            if machine.gone:
                self._replace(machine)

    async def _repeat(self, every: float, deed: Callable[[], None]) -> None:
        while True:
            await asyncio.sleep(self._random.expovariate(1 / every))
            deed()

    def _pick(self) -> Machine | None:
        """Pick a machine that is up, and rather one that is at work."""
        there = [machine for machine in self._machines if machine.is_up]
        busy = [machine for machine in there if machine.is_busy]
        if busy and self._random.random() < 0.8:
            return self._random.choice(busy)
        return self._random.choice(there) if there else None

    def _cut(self) -> None:
        machine = self._pick()
        if machine is not None:
            way = self._random.choice(("up", "down", "both"))
            seconds = self._random.uniform(5, self._random.choice((60, 500, 1200)))
            self._ledger.trace("cut", machine.name, way, f"{seconds:.1f}")
            self._ledger.counts["partitions"] += 1
            until = asyncio.get_running_loop().time() + seconds
            machine.link.cut(until, up=way != "down", down=way != "up")

    def _clog(self) -> None:
        machine = self._pick()
        if machine is not None:
            until = asyncio.get_running_loop().time() + self._random.uniform(0.5, 10)
            machine.link.clogged_until = until
            self._ledger.counts["clogs"] += 1

    def _swizzle(self) -> None:
        """Cut all links one after the other, and heal them in another order."""
        now = asyncio.get_running_loop().time()
        self._ledger.counts["swizzles"] += 1
        for machine in self._machines:
            begin, end = self._random.uniform(0, 30), self._random.uniform(30, 120)
            asyncio.get_running_loop().call_at(now + begin, _cut_both, machine, now + end)

    def _stop_server(self) -> None:
        if self._control.deps is not None:
            self._ledger.counts["server_kills"] += 1
            self._control.kill()
            seconds = self._random.choice((1.0, 20.0, 120.0, 600.0)) * self._random.random()
            asyncio.get_running_loop().call_later(seconds, self._control.start)

    def _crash(self) -> None:
        machine = self._pick()
        if machine is None:
            return
        gone = self._random.random() < self._mix.gone_for_good
        machine.crash(linger=self._random.random() < self._mix.linger, gone=gone)
        seconds = self._random.choice((0.1, 5.0, 60.0, 300.0)) * self._random.uniform(0.5, 1.5)
        loop = asyncio.get_running_loop()
        if gone:
            loop.call_later(seconds + _GONE_REPLACED_S, self._replace, machine)
        else:
            loop.call_later(seconds, machine.boot)

    def _fill(self) -> None:
        machine = self._pick()
        if machine is not None:
            seconds = self._random.uniform(1, self._random.choice((10, 100)))
            self._ledger.trace("full", machine.name, f"{seconds:.1f}")
            self._ledger.counts["full_disks"] += 1
            machine.full_until = asyncio.get_running_loop().time() + seconds

    def _rotate(self) -> None:
        self._ledger.trace("rotate")
        self._ledger.counts["rotations"] += 1
        self._control.rotate_key()

    def _restore(self) -> None:
        self._ledger.trace("restore")
        self._ledger.counts["restores"] += 1
        self._control.restore()

    def _remove(self) -> None:
        machine = self._pick()
        if machine is not None and not machine.removed and self._control.deps is not None:
            self._ledger.counts["removals"] += 1
            self._take_away(machine)

    def _freeze(self) -> None:
        """Freeze a machine, but never past its dead-man time.

        A machine that stands still while its dead-man timer should fire, and wakes after the
        900 s, can make one more call: no protocol prevents that, so it is not asked to.
        """
        machine = self._pick()
        if machine is None or machine.power.is_frozen:
            return
        silent = asyncio.get_running_loop().time() - machine.api.contact_at
        longest = TIMINGS.deadman_mutating_s - silent - _MARGIN_S
        seconds = min(self._random.uniform(5, 400), longest)
        if seconds > 0:
            machine.freeze(seconds)


def _cut_both(machine: Machine, until: float) -> None:
    if not machine.healed:
        machine.link.cut(until, up=True, down=True)
