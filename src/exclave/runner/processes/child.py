"""The only module that starts commands: argv as data, in their own session, always ended."""

import asyncio
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from exclave.base.clock import Clock
from exclave.runner.logs.pump import Pump
from exclave.runner.logs.spool import LogWriter
from exclave.runner.outcomes import WorkFailed
from exclave.runner.processes import cgroups, prctl, procfs
from exclave.runner.processes.cell import NO_CELL, Cell
from exclave.runner.processes.leftovers import kill_cell, record_process
from exclave.runner.processes.leftovers import kill_leftovers as kill_leftovers
from exclave.runner.processes.user_namespaces import open_namespace
from exclave.runner.wakeups import wait_first
from exclave.wire.jobs import Reason
from exclave.wire.logs import Stream

NICENESS = 7
"""The niceness of children, so that renewals stay on time while jobs use every core."""

_LINGER_S = 0.5
"""How long output may follow the end of the command; pipelines flush a moment later."""
_AFTER_KILL_S = 1.0
_POLL_S = 0.05
_PAUSE_S = 0.01
_TERM_SHARE = 2 / 3
_PIPE_BYTES = 1 << 20
_NICEST = 19


@dataclass(frozen=True, slots=True)
class Command:
    """A command to start: its arguments, its complete environment, its folder."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    as_root: bool = False
    """Whether it is root of a user namespace, if jobs are isolated by user."""


class Child:
    """A running command and its descendants."""

    def __init__(
        self, process: subprocess.Popen[bytes], execution_id: str, clock: Clock, cell: Cell
    ) -> None:
        self._process = process
        self._cell = cell
        self._left: set[int] = set()
        self._execution_id = execution_id
        self._clock = clock
        self._exited = asyncio.Event()
        self._pump: Pump | None = None
        self._watch = asyncio.create_task(self._watch_exit())

    @property
    def has_exited(self) -> bool:
        """Whether the command has exited; its descendants may still run until `close`."""
        return self._exited.is_set()

    def pump_into(self, log: LogWriter) -> None:
        """Start reading its output."""
        out, err = self._process.stdout, self._process.stderr
        if out is not None and err is not None:
            pipes = {os.dup(out.fileno()): Stream.STDOUT, os.dup(err.fileno()): Stream.STDERR}
            out.close()
            err.close()
            self._pump = Pump(pipes, log)
            self._pump.start()

    async def wait_exit(self) -> None:
        """Wait until the command has exited."""
        await self._exited.wait()

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the whole group; its leader is not reaped, so the id is not reused."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    async def kill(self) -> None:
        """Kill the group, and processes that left it but still have the execution's marker."""
        self.send(signal.SIGKILL)
        await asyncio.to_thread(self._kill_rest)

    async def close(self) -> int | None:
        """Kill remaining processes, read the last output, reap; None if it could not be killed.

        The exit code is negative for a signal, as in `subprocess`.
        """
        if self._exited.is_set():
            await self._await_output(_LINGER_S)
        await self.kill()
        await wait_first(self._clock, _AFTER_KILL_S, self.wait_exit())
        await self._await_output(_LINGER_S)
        if self._pump is not None and not self._pump.is_done:
            self._pump.leave()
            await self._pump.wait()
        self._watch.cancel()
        # A process that was forked during the first round is found now.
        await self._end_rest()
        if not self._exited.is_set():
            return None
        code = self._process.wait()
        if self._cell.orphans is not None:
            self._cell.orphans.forget(self._process.pid)
        return code

    def _kill_rest(self) -> int:
        """Kill processes of the execution that left the group; return how many there were.

        A command that succeeded may leave a service running, if it removed the marker on purpose;
        not if jobs are isolated by user.
        """
        user = self._cell.user
        uid = user.uid if user is not None and user.alone else None
        killed = procfs.kill_marked(self._execution_id)
        if user is None and self._has_succeeded():
            if self._cell.orphans is not None:
                self._cell.orphans.let_be()
            return killed
        killed += len(kill_cell(self._execution_id, uid, self._cell.cgroup) - {self._process.pid})
        if self._cell.orphans is not None:
            self._left |= self._cell.orphans.claim()
            killed += self._cell.orphans.end(self._left)
        return killed

    def _has_succeeded(self) -> bool:
        """Return whether the command exited with code 0; it stays unreaped."""
        with suppress(ChildProcessError):
            flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
            ended = os.waitid(os.P_PID, self._process.pid, flags)
            return ended is not None and (ended.si_code, ended.si_status) == (os.CLD_EXITED, 0)
        return False

    async def _end_rest(self) -> None:
        """Repeat until no process is found: a killed process may leave children."""
        until = self._clock.monotonic() + _AFTER_KILL_S
        while await asyncio.to_thread(self._kill_rest) and self._clock.monotonic() < until:
            await self._clock.sleep(_PAUSE_S)

    async def _await_output(self, seconds: float) -> None:
        if self._pump is not None:
            await wait_first(self._clock, seconds, self._pump.wait())

    async def _watch_exit(self) -> None:
        """Wait for the exit without reaping: while the leader is a zombie, its id is not reused."""
        try:
            handle = os.pidfd_open(self._process.pid)
        except (OSError, AttributeError):
            await self._poll_exit()
            return
        loop = asyncio.get_running_loop()
        try:
            loop.add_reader(handle, self._note_exit)
            await self._exited.wait()
        finally:
            loop.remove_reader(handle)
            os.close(handle)

    def _note_exit(self) -> None:
        is_kept = self._cell.user is None and self._has_succeeded()
        if not self._exited.is_set() and self._cell.orphans is not None and not is_kept:
            self._left |= self._cell.orphans.claim()
        self._exited.set()

    async def _poll_exit(self) -> None:
        while self._process.poll() is None:
            await self._clock.sleep(_POLL_S)
        self._note_exit()


async def start_child(
    command: Command,
    *,
    folder: Path,
    execution_id: str,
    log: LogWriter,
    clock: Clock,
    cell: Cell = NO_CELL,
) -> Child:
    """Start a command, record it on disk, and only then read its output.

    The marker of the execution is always added to the environment.
    """
    _check_tool(command)
    env = {**command.env, procfs.MARKER: execution_id}
    # In its own thread, which lowers its priority for the child to inherit, and ends.
    spawner = ThreadPoolExecutor(1, thread_name_prefix="spawn")
    spawning = asyncio.get_running_loop().run_in_executor(spawner, _spawn, command, env, cell)
    spawner.shutdown(wait=False)
    try:
        process = await asyncio.shield(spawning)
    except asyncio.CancelledError:
        with suppress(WorkFailed):
            await Child(await spawning, execution_id, clock, cell).close()
        raise
    child = Child(process, execution_id, clock, cell)
    try:
        await asyncio.to_thread(record_process, folder, execution_id, process.pid, cell)
        child.pump_into(log)
    except BaseException:
        await child.close()
        raise
    return child


async def end_child(
    child: Child, clock: Clock, grace_s: float, *, hurry: Awaitable[float] | None = None
) -> None:
    """Ask a child to end: SIGINT, SIGTERM after two thirds of the grace, SIGKILL at its end.

    `hurry` may return a shorter grace meanwhile, which counts from then.
    """
    now = clock.monotonic()
    term_at, kill_at = now + grace_s * _TERM_SHARE, now + grace_s
    hurrying = asyncio.ensure_future(hurry) if hurry is not None else None
    child.send(signal.SIGINT)
    termed = False
    try:
        while not child.has_exited and now < kill_at:
            if now >= term_at and not termed:
                child.send(signal.SIGTERM)
                termed = True
            until = (kill_at if termed else term_at) - now
            await _wait_or_hurry(clock, until, child, hurrying)
            now = clock.monotonic()
            if hurrying is not None and hurrying.done():
                shorter, hurrying = hurrying.result(), None
                term_at = min(term_at, now + shorter * _TERM_SHARE)
                kill_at = min(kill_at, now + shorter)
    finally:
        if hurrying is not None:
            hurrying.cancel()
    if not child.has_exited:
        await child.kill()


async def _wait_or_hurry(
    clock: Clock, seconds: float, child: Child, hurrying: "asyncio.Future[float] | None"
) -> None:
    waits: list[Awaitable[object]] = [child.wait_exit()]
    if hurrying is not None:
        waits.append(asyncio.shield(hurrying))
    await wait_first(clock, seconds, *waits)


def _check_tool(command: Command) -> None:
    tool = command.argv[0]
    path = command.env.get("PATH", "")
    if "/" not in tool and shutil.which(tool, path=path) is None:
        message = f"`{tool}` is not installed on the runner: it is not in PATH ({path})"
        raise WorkFailed(Reason.TOOL_MISSING, message)
    if "/" in tool and not (command.cwd / tool).exists():
        raise WorkFailed(Reason.TOOL_MISSING, f"`{tool}` does not exist on the runner")


def _spawn(command: Command, env: Mapping[str, str], cell: Cell) -> subprocess.Popen[bytes]:
    niceness = min(_NICEST, os.nice(0) + NICENESS)
    if sys.platform == "linux":  # on systems where threads have priorities
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), niceness)
    try:
        process = _start(command, env, cell)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        message = f"`{command.argv[0]}` cannot be started: {why}"
        raise WorkFailed(Reason.SPAWN_FAILED, message) from error
    _make_nice(process.pid, niceness)
    for pipe in (process.stdout, process.stderr):
        if pipe is not None and hasattr(fcntl, "F_SETPIPE_SZ"):
            with suppress(OSError):
                fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    return process


def _start(command: Command, env: Mapping[str, str], cell: Cell) -> subprocess.Popen[bytes]:
    # In a namespace of its own the child becomes the job's user when it enters it.
    user = None if command.as_root else cell.user
    door = None if cell.cgroup is None else cgroups.open_cgroup(cell.cgroup)
    with _list_ours(cell) as ours:
        namespace = None
        try:
            namespace = open_namespace(cell.user) if command.as_root and cell.user else None
            process = subprocess.Popen(  # noqa: S603 - running what was ordered and signed is the job
                command.argv,
                env=env,
                cwd=command.cwd,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                bufsize=0,
                user=None if user is None else user.uid,
                group=None if user is None else user.gid,
                extra_groups=None if user is None else (),
                preexec_fn=_choose_binding(cell, door, namespace),  # noqa: PLW1509 - system calls only
            )
        finally:
            for handle in (door, namespace):
                if handle is not None:
                    os.close(handle)
        ours.add(process.pid)
    return process


def _list_ours(cell: Cell) -> AbstractContextManager[set[int]]:
    return nullcontext(set[int]()) if cell.orphans is None else cell.orphans.starting()


def _choose_binding(
    cell: Cell, door: int | None, namespace: int | None
) -> Callable[[], None] | None:
    if cell.user is None and cell.orphans is None and door is None:
        return None
    return prctl.bind_child(door, confined=cell.user is not None, namespace=namespace)


def _make_nice(group: int, niceness: int) -> None:
    """Lower the priority of a group, and of its session where the kernel shares by session."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PGRP, group, niceness)
    with suppress(OSError):
        Path(f"/proc/{group}/autogroup").write_text(str(niceness))
