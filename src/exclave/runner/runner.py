"""The runner process: start, background tasks, stop."""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any

from exclave import __version__
from exclave.base.clock import Clock
from exclave.base.errors import Problem
from exclave.base.ids import Ids, Randomness
from exclave.base.logs import Log
from exclave.client.retry import RetryPolicy, retry
from exclave.client.runner import RunnerApi
from exclave.runner.audit import Audit
from exclave.runner.cloud.enrolling import CloudEnrolment
from exclave.runner.config import RunnerConfig
from exclave.runner.control_plane.access_token import Session
from exclave.runner.control_plane.envelope_trust import Trust
from exclave.runner.control_plane.heartbeat_pace import Pace
from exclave.runner.control_plane.identity import (
    IDENTITY,
    Identity,
    NotEnrolled,
    enrol,
    load_identity,
    load_key,
)
from exclave.runner.data_folder import DataFolder
from exclave.runner.executions.deps import Deps, KillLeftovers
from exclave.runner.executions.outbox import Outbox
from exclave.runner.executions.recovery import recover
from exclave.runner.executions.roster import Phase, Roster
from exclave.runner.executions.stats import Measure, Tally, measure_machine
from exclave.runner.executions.stop import shut_down
from exclave.runner.jobs.executor import Executor
from exclave.runner.jobs.identity import OpenIdentity, bind_no_identity
from exclave.runner.logs.protocols import OpenLog
from exclave.runner.loops.poll_loop import Poller
from exclave.runner.loops.renew_loop import Renewer
from exclave.runner.processes.cell import Cells
from exclave.runner.secrets.held import HeldSecrets
from exclave.runner.wakeups import Signals, wait_first
from exclave.wire.jobs import JobKind
from exclave.wire.runner import KINDS

_log = Log("runner")

Duty = Callable[[Deps], Coroutine[Any, Any, None]]
"""A background coroutine that runs as long as the runner."""

ENROLMENTS = RetryPolicy(first_s=0.5, longest_s=5.0, give_up_s=600.0)


class Runner:
    """One runner process. `run` returns after `request_stop`, or raises what ended it.

    Cancelling `run` is like a crash: nothing is written or reported.
    """

    def __init__(
        self,
        config: RunnerConfig,
        *,
        api: RunnerApi,
        clock: Clock,
        randomness: Randomness,
        executors: Mapping[JobKind, Executor],
        open_log: OpenLog,
        kill_leftovers: KillLeftovers,
        cells: Cells | None = None,
        measure: Measure = measure_machine,
        enrolment_token: str | None = None,
        cloud: CloudEnrolment | None = None,
        pinned: Mapping[str, str] | None = None,
        duties: Sequence[Duty] = (),
        leave: Duty | None = None,
        held: HeldSecrets | None = None,
        bind_identity: Callable[[Audit], OpenIdentity] = bind_no_identity,
    ) -> None:
        self._config = config
        self._api = api
        self._clock = clock
        self._ids = Ids(clock, randomness)
        self._executors = executors
        self._open_log = open_log
        self._kill_leftovers = kill_leftovers
        self._cells = cells or Cells()
        self._measure = measure
        self._enrolment_token = enrolment_token
        self._cloud = cloud
        self._pinned = pinned
        self._duties = duties
        self._leave = leave
        self._held = held or HeldSecrets()
        self._bind_identity = bind_identity
        self._signals = Signals()
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._failure: BaseException | None = None

    async def run(self) -> None:
        """Lock the data folder, recover, and run jobs until a stop is requested."""
        config = self._config
        disk = DataFolder(
            config.data, reserve_bytes=config.reserve_bytes, executions=config.executions
        )
        session: Session | None = None
        try:
            deps = await self._prepare(disk)
            session = deps.session
            await self._work(deps)
        finally:
            for task in list(self._tasks):
                task.cancel()
            if session is not None:
                session.close()
            disk.close()
        if self._failure is not None:
            raise self._failure

    def request_stop(self) -> None:
        """Accept no more jobs, stop the running ones, deliver results; then `run` returns."""
        self._signals.stopping.set()

    async def _prepare(self, disk: DataFolder) -> Deps:
        boot = disk.raise_boot()
        audit = Audit(disk.audit, self._clock, disk.give_up_reserve)
        audit.write("started", boot=boot, version=__version__)
        identity = await self._identify(disk, audit)
        session = Session(
            self._api,
            disk,
            identity,
            load_key(disk.path),
            clock=self._clock,
            randomness=self._ids.randomness,
            note_token=self._held.note_token,
        )
        return self._build_deps(disk, audit, session, boot)

    async def _identify(self, disk: DataFolder, audit: Audit) -> Identity:
        """Return the identity: the one on the disk, else by attestation, else by a token."""
        token, cloud = self._enrolment_token, self._cloud
        if (token is None and cloud is None) or (disk.path / IDENTITY).exists():
            return load_identity(disk.path)
        if cloud is not None:
            identity = await cloud.enrol(
                disk,
                name=self._config.name,
                capabilities=tuple(self._executors),
                pinned=self._pinned,
                by_code=partial(self._enrol_by_token, disk),
                stopping=self._signals.stopping,
            )
        else:
            identity = await self._enrol_by_token(disk, token or "")
        audit.write("enrolled", runner_id=identity.runner_id, keys=list(identity.keys))
        return identity

    async def _enrol_by_token(self, disk: DataFolder, token: str) -> Identity:
        async def try_once() -> Identity:
            if self._signals.stopping.is_set():
                raise NotEnrolled("stopped before it was enrolled")
            return await enrol(
                disk,
                self._api,
                token=token,
                name=self._config.name,
                capabilities=tuple(self._executors),
                randomness=self._ids.randomness,
                pinned=self._pinned,
            )

        return await retry(try_once, ENROLMENTS, self._clock, self._ids.randomness)

    def _build_deps(self, disk: DataFolder, audit: Audit, session: Session, boot: int) -> Deps:
        mine = KINDS[session.identity.kind]
        executors = {kind: executor for kind, executor in self._executors.items() if kind in mine}
        return Deps(
            config=self._config,
            api=self._api,
            clock=self._clock,
            ids=self._ids,
            executors=executors,
            open_log=self._open_log,
            kill_leftovers=self._kill_leftovers,
            cells=self._cells,
            measure=self._measure,
            disk=disk,
            audit=audit,
            session=session,
            trust=Trust(
                disk,
                session.identity,
                audit,
                clock=self._clock,
                capabilities=tuple(executors),
            ),
            outbox=Outbox(disk, self._clock),
            roster=Roster(boot),
            signals=self._signals,
            pace=Pace(session.timings.renew_s),
            tally=Tally(),
            mask=self._held.mask,
            open_identity=self._bind_identity(audit),
            spawn=self._spawn,
        )

    async def _work(self, deps: Deps) -> None:
        recover(deps)
        for duty in self._duties:
            self._spawn(duty(deps), getattr(duty, "__name__", "duty"))
        renewer = Renewer(deps)
        renewing = self._spawn(renewer.run(), "renewing")
        polling = self._spawn(Poller(deps).run(), "polling")
        await self._signals.stopping.wait()
        polling.cancel()
        await self._stop_work(deps)
        if self._failure is None:
            renewing.cancel()
            await self._send_last_renewal(renewer)
            if self._leave is not None:
                await self._leave(deps)
        deps.audit.write("stopped", failure=str(self._failure or ""))

    async def _stop_work(self, deps: Deps) -> None:
        """Stop all jobs, then wait briefly for the delivery of the last results."""
        for execution in deps.roster.list_alive():
            shut_down(deps, execution)
        while any(alive.phase is not Phase.ENDED for alive in deps.roster.list_alive()):
            await deps.signals.changed.wait()
        until = self._clock.monotonic() + self._config.shutdown_s
        while deps.roster.list_alive() and self._failure is None:
            left = until - self._clock.monotonic()
            if left <= 0:
                break
            await wait_first(self._clock, left, deps.signals.changed.wait())

    async def _send_last_renewal(self, renewer: Renewer) -> None:
        """Renew once more: executions that are no longer listed are proven to have stopped."""
        try:
            await renewer.renew()
        except Problem as problem:
            _log.warning("leave_not_taken", code=problem.code)

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=name)
        self._tasks[task] = None
        task.add_done_callback(self._end_task)
        return task

    def _end_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        if task.cancelled():
            return
        failure = task.exception()
        if failure is not None and self._failure is None:
            _log.error("task_failed", task=task.get_name(), exc=failure)
            self._failure = failure
            self._signals.stopping.set()
            self._signals.changed.fire()


def stop_on_signals(runner: Runner) -> None:
    """Stop the runner gracefully on SIGTERM and SIGINT."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, runner.request_stop)
