"""The control plane as a process: two HTTP servers and their background work on one loop."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import AsyncIterator, Coroutine, Iterator
from dataclasses import dataclass, replace
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from exclave import __version__
from exclave.api.control import build_control_app
from exclave.api.metrics import Metrics
from exclave.api.runner import build_runner_app
from exclave.base.errors import InvalidInput
from exclave.base.logs import Log
from exclave.control.deps import Deps
from exclave.control.schedules import run_schedules
from exclave.control.sweep import Sweeper, run_timers
from exclave.main.composition import build_deps, lock_data
from exclave.main.memory import keep_young
from exclave.main.settings import ServerSettings
from exclave.registry import build_registry_app
from exclave.storage.listener import listen

log = Log("server")

_BACKLOG = 4096
_TICK_S = 1.0
_KEEPALIVE = (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 3), ("TCP_KEEPCNT", 2))
"""A peer that is gone without a word is noticed by the kernel in about eleven seconds."""


class _Server(uvicorn.Server):
    """Leaves signals to us, as there are two of these in one process; idles without a tick."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Let open requests end, then return from `serve`."""
        self.should_exit = True
        self._stopping.set()

    async def main_loop(self) -> None:
        """Set the date of replies once a second; uvicorn looks ten times whether it is to end."""
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), _TICK_S)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture nothing."""
        yield


@dataclass(frozen=True, slots=True)
class Running:
    """A control plane at work."""

    deps: Deps
    control_url: str
    runner_url: str


async def serve(settings: ServerSettings) -> None:
    """Serve until SIGTERM or SIGINT, then let open requests end."""
    stopping = watch_signals()
    async with run_control_plane(settings) as running:
        tidying = _spawn(keep_young(running.deps.clock))
        await stopping.wait()
        tidying.cancel()


def watch_signals() -> asyncio.Event:
    """Make an event that SIGTERM and SIGINT set."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    return stopping


@contextlib.asynccontextmanager
async def run_control_plane(
    settings: ServerSettings, *, runs_stacks: bool = False
) -> AsyncIterator[Running]:
    """Run the whole control plane while the block lasts. Port 0 takes a free one."""
    lock = lock_data(settings)
    control = _listen(settings.control_host, settings.control_port)
    runner = _listen(settings.runner_host, settings.runner_port)
    ports = {"control_port": control.getsockname()[1], "runner_port": runner.getsockname()[1]}
    settings = settings.model_copy(update=ports)
    deps = replace(build_deps(settings), runs_stacks=runs_stacks)
    deps.hub.attach(asyncio.get_running_loop())
    metrics = Metrics()
    servers = [
        _make_server(build_control_app(deps, metrics), settings),
        _make_server(build_runner_app(deps, metrics, choose_registry(deps)), settings),
    ]
    sockets = [control, runner]
    tasks = [
        asyncio.create_task(server.serve(sockets=[bound]))
        for server, bound in zip(servers, sockets, strict=True)
    ]
    background = [
        _spawn(Sweeper(deps).run()),
        _spawn(run_timers(deps)),
        _spawn(run_schedules(deps)),
    ]
    if deps.db.dialect.crosses_processes:
        background.append(_spawn(listen(settings.database_url, deps.hub, deps.db.name)))
    log.info(
        "server_started", version=__version__, server=deps.db.name, **deps.db.dialect.describe()
    )
    try:
        url = f"http://{settings.control_host}:{settings.control_port}"
        yield Running(deps, url, deps.runner_url)
    finally:
        for server in servers:
            server.stop()
        deps.hub.close()
        await asyncio.gather(*tasks, return_exceptions=True)
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
        await asyncio.to_thread(deps.db.close)
        await deps.blobs.close()
        if lock is not None:
            lock.close()
        log.info("server_stopped", server=deps.db.name)


def choose_registry(deps: Deps) -> ASGIApp | None:
    """Serve our own registry, unless artifacts are kept in another."""
    return None if deps.registry_url else build_registry_app(deps)


def _spawn(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    return asyncio.create_task(work)


def _make_server(app: Any, settings: ServerSettings) -> _Server:
    return _Server(
        uvicorn.Config(
            app, log_config=None, access_log=False, server_header=False, http="httptools",
            proxy_headers=False,  # nobody asks for the client's address
            timeout_keep_alive=75, timeout_graceful_shutdown=int(settings.shutdown_s),
            lifespan="off", h11_max_incomplete_event_size=65_536,
        )
    )  # fmt: skip


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        if hasattr(socket, name):
            bound.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    try:
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise InvalidInput(
            f"cannot listen on {host}:{port}: {error.strerror}",
            hint="Stop what uses the port, or choose another with EXCLAVE_CONTROL_PORT"
            " and EXCLAVE_RUNNER_PORT.",
        ) from error
    bound.listen(_BACKLOG)
    return bound
