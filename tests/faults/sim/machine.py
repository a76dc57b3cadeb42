"""A machine with one runner on it: crashes, freezes, drifts, restarts; its disk survives."""

import asyncio
import errno
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

from exclave.base.clock import Clock
from exclave.base.errors import Problem
from exclave.base.ids import SeededRandomness
from exclave.runner.config import RunnerConfig
from exclave.runner.control_plane.access_token import IdentityRefused
from exclave.runner.executions.stats import Machine as Measured
from exclave.runner.logs.protocols import SendLog, ShippedLog
from exclave.runner.logs.spooled_log import SpooledLog
from exclave.runner.runner import Runner
from exclave.wire.jobs import JobKind
from tests.faults.sim.api import Gate, Power, SimApi
from tests.faults.sim.executor import CANARY, Child, SimExecutor
from tests.faults.sim.ledger import Cloud, Ledger
from tests.faults.sim.mix import Mix
from tests.faults.sim.network import Link, Network
from tests.support.virtual_time import START

_LINGER_S = 250.0
_RESTART_S = 5.0


class MachineClock:
    """Runs a little fast or slow, shows a wrong date, and stands still for whoever is frozen."""

    def __init__(self, gate: Gate, *, rate: float = 1.0, skew_s: float = 0.0) -> None:
        self._gate = gate
        self._rate = rate
        self.skew_s = skew_s

    def now(self) -> datetime:
        return START + timedelta(seconds=self.skew_s + self.monotonic())

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time() * self._rate

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / self._rate)
        await self._gate.pass_through()


class Machine:
    """Keeps one runner process running, unless it is told otherwise."""

    def __init__(
        self,
        name: str,
        queue: str,
        folder: Path,
        token: str,
        *,
        network: Network,
        cloud: Cloud,
        ledger: Ledger,
        mix: Mix,
        random: Random,
    ) -> None:
        self.name = name
        self.queue = queue
        self.folder = folder
        self.link = Link(name)
        self.children: dict[str, Child] = {}
        """Processes that outlived their runner."""
        self.spools: dict[str, bytearray] = {}
        """All that was ever written to the log of each execution."""
        self.kept: dict[str, None] = {}
        """Executions whose results were once in the outbox."""
        self.gone = False
        self.removed = False
        """A person took its identity away: it will be told, and its results are not wanted."""
        self.full_until = 0.0
        self._token = token
        self._network = network
        self._cloud = cloud
        self._ledger = ledger
        self._mix = mix
        self._random = random
        self._rate = 1.0 + random.uniform(-mix.rate, mix.rate)
        self._skew_s = random.uniform(-mix.skew_s, mix.skew_s)
        self.power = Power()
        self._gate = Gate(self.power)
        self._executor: SimExecutor | None = None
        self._task: asyncio.Task[None] | None = None
        self.api = SimApi(network, self.link, self._gate)
        self.healed = False

    @property
    def is_up(self) -> bool:
        """Tell whether a runner process is there."""
        return self._task is not None and not self._task.done()

    @property
    def is_lost(self) -> bool:
        """Tell whether nothing more is expected of it."""
        return self.gone or self.removed

    @property
    def is_busy(self) -> bool:
        """Tell whether the runner has work under way."""
        return self._executor is not None and bool(self._executor.children)

    def boot(self) -> None:
        """Start the runner."""
        if self.gone or self.is_up:
            return
        self._gate = Gate(self.power)
        self.api = SimApi(self._network, self.link, self._gate)
        self.api.contact_at = asyncio.get_running_loop().time()
        self._task = asyncio.get_running_loop().create_task(self._supervise())
        self._ledger.trace("boot", self.name)

    def crash(self, *, linger: bool, gone: bool = False) -> None:
        """Kill the process; what it had started dies with it, or goes on for a while."""
        if not self.is_up or self._task is None:
            return
        self._ledger.trace("crash", self.name, linger, gone)
        self._ledger.counts["kills"] += 1
        self._gate.dead = True
        self._task.cancel()
        self.gone = gone
        children = self._executor.children if self._executor else {}
        for execution, child in children.items():
            child.log = None
            if linger and not gone:
                self._outlive(execution, child)
            else:
                child.kill()

    def freeze(self, seconds: float) -> None:
        """Stop the machine's time for everything but the clock on its wall."""
        self._ledger.trace("freeze", self.name, f"{seconds:.1f}")
        self._ledger.counts["freezes"] += 1
        self.power.frozen_until = asyncio.get_running_loop().time() + seconds
        for execution in self._executor.children if self._executor else {}:
            self._cloud.weak[execution] = None

    def heal(self) -> None:
        """Take every fault away, the wrong date included."""
        self.link.heal()
        self.healed = True
        self.full_until = 0.0
        self._skew_s = 0.0

    def may_write(self) -> None:
        """Die at a write, now and then: just before it or just after it."""
        self._gate.check_alive()
        if not self.healed and self._random.random() < self._mix.crash_at_write:
            self.crash(linger=self._random.random() < self._mix.linger)
            self._gate.check_alive()

    def check_room(self) -> None:
        """Fail as a full disk does."""
        if asyncio.get_running_loop().time() < self.full_until:
            raise OSError(errno.ENOSPC, "the simulated disk is full")

    def note_write(self, *args: object) -> None:
        """Remember which results were kept: from then on no crash may lose them."""
        file = args[0]
        self._check_secret(args[-1])
        if len(args) > 1 and isinstance(file, Path) and file.parent.name == "outbox":
            self.kept[file.stem] = None

    def _check_secret(self, data: object) -> None:
        """What is spooled or waits in the outbox will leave the machine."""
        if isinstance(data, bytes) and CANARY.encode() in data:
            self._ledger.report("I11", "a secret is about to leave", self.name)

    def _outlive(self, execution: str, child: Child) -> None:
        self._cloud.weak[execution] = None
        self.children[execution] = child
        asyncio.get_running_loop().call_later(_LINGER_S, child.kill)

    async def _supervise(self) -> None:
        while True:
            try:
                await self._build().run()
            except IdentityRefused as problem:
                if self.removed:
                    self._ledger.trace("gone", self.name)
                    self.gone = True
                    return
                self._ledger.report("I7", "runner was locked out", self.name, problem.message)
                return
            except Problem as problem:
                self._ledger.trace("runner ended", self.name, problem.code)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    self._ledger.report("BUG", "runner", self.name, repr(error))
                self._ledger.trace("runner ended", self.name, "full")
            except Exception as error:  # noqa: BLE001 - a bug of the runner must be seen
                self._ledger.report("BUG", "runner", self.name, repr(error))
            await asyncio.sleep(_RESTART_S)

    def _build(self) -> Runner:
        clock = MachineClock(self._gate, rate=self._rate, skew_s=self._skew_s)
        randomness = SeededRandomness(self._random.getrandbits(32))
        of_children = MachineClock(Gate(self.power), rate=self._rate)
        self._executor = SimExecutor(self._cloud, clock, of_children, self._random, self._mix)
        return Runner(
            RunnerConfig(
                data=self.folder,
                runner_url="http://sim",
                name=self.name,
                capacity=2,
                max_hold_s=150.0,
                keep_free_bytes=0,
                reserve_bytes=0,
            ),
            api=self.api,
            clock=clock,
            randomness=randomness,
            executors={JobKind.NOOP: self._executor},
            open_log=self._bind_open_log(clock, randomness),
            kill_leftovers=self._kill_leftovers,
            measure=lambda _: Measured(load=0.0, memory_bytes=0, disk_free_bytes=1 << 40),
            enrolment_token=self._token,
        )

    def _bind_open_log(
        self, clock: Clock, randomness: SeededRandomness
    ) -> Callable[[Path, str, SendLog], ShippedLog]:
        def open_log(folder: Path, execution_id: str, send: SendLog) -> ShippedLog:
            log = SpooledLog(folder, send, clock=clock, randomness=randomness)
            written = self.spools.setdefault(execution_id, bytearray())
            if log.end != len(written):
                self._ledger.report("I8", "spool lost records", execution_id)
            append = log._spool.append

            def append_and_keep(data: bytes, count: int) -> None:
                self._gate.check_alive()
                self.check_room()
                self._check_secret(data)
                append(data, count)
                written.extend(data)

            log._spool.append = append_and_keep  # type: ignore[method-assign]
            return log

        return open_log

    async def _kill_leftovers(self, folder: Path, clock: Clock) -> bool:
        """End what outlived the runner; one that crashes meanwhile leaves it to the next."""
        child = self.children.get(folder.name)
        if child is not None:
            await clock.sleep(self._random.uniform(0.0, 2.0))
            child.kill()
            self.children.pop(folder.name, None)
        return True
