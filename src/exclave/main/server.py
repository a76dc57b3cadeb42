"""The control plane process: two HTTP servers and their background tasks on one event loop."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import AsyncIterator, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any

from starlette.types import ASGIApp

from exclave import __version__
from exclave.api.control import build_control_app
from exclave.api.metrics import Metrics
from exclave.api.runner import build_runner_app
from exclave.base.errors import InvalidInput
from exclave.base.logs import Log
from exclave.control.background.tasks import list_chores
from exclave.control.chores import run_chore
from exclave.control.deps import Deps, ServerDeps
from exclave.control.progress.prepare_steps import run_preparer
from exclave.control.runtime.held_requests import HeldRequests
from exclave.main.composition import build_deps, lock_data
from exclave.main.connections import ConnectionLimits, raise_file_limit, share_connections
from exclave.main.gc_tuning import keep_young
from exclave.main.http_server import HttpServer
from exclave.main.settings import ServerSettings
from exclave.registry import build_registry_app
from exclave.storage.engine.listener import listen

log = Log("server")

_CONTROL, _RUNNER, _ALL = "control", "runner", "all"
_BACKLOG = 4096
_FILES_OF_DEV = 1 << 16
"""Maximum open files of a process whose children run jobs, which inherit the limit."""
_KEEPALIVE = (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 3), ("TCP_KEEPCNT", 2))
"""The kernel detects a dead peer in about eleven seconds."""


@dataclass(frozen=True, slots=True)
class Running:
    """A running control plane."""

    deps: ServerDeps
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
    """Return an event that SIGTERM and SIGINT set."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    return stopping


@contextlib.asynccontextmanager
async def run_control_plane(
    settings: ServerSettings, *, runs_stacks: bool = False
) -> AsyncIterator[Running]:
    """Run the whole control plane while the block lasts. Port 0 picks a free one."""
    lock = lock_data(settings)
    sockets = _open_sockets(settings)
    ports = {f"{api}_port": bound.getsockname()[1] for api, bound in sockets.items()}
    settings = settings.model_copy(update=ports)
    deps, servers, metrics = _build_servers(settings, list(sockets), runs_stacks=runs_stacks)
    serving = [
        _spawn(server.serve(sockets=[bound]))
        for server, bound in zip(servers, sockets.values(), strict=True)
    ]
    background = _start_background(settings, deps, metrics)
    log.info(
        "server_started", version=__version__, server=deps.db.name, **deps.db.dialect.describe()
    )
    try:
        url = f"http://{settings.control_host}:{settings.control_port}"
        yield Running(deps, url, deps.runner_url)
    finally:
        deps.health.stopping = True
        for server in servers:
            server.stop()
        deps.hub.close()
        await asyncio.gather(*serving, return_exceptions=True)
        await deps.workers.close()
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
        await asyncio.to_thread(deps.db.close)
        await deps.blobs.close()
        if lock is not None:
            lock.close()
        log.info("server_stopped", server=deps.db.name)


def _build_servers(
    settings: ServerSettings, apis: Sequence[str], *, runs_stacks: bool
) -> tuple[ServerDeps, list[HttpServer], Metrics]:
    """Return the dependencies of all requests and a server for each API, none of them started."""
    files = raise_file_limit(_FILES_OF_DEV if runs_stacks else None)
    shares = share_connections(files, settings.max_connections)
    deps = replace(
        build_deps(settings),
        runs_stacks=runs_stacks,
        held_by_users=HeldRequests(shares[0]),
        held_by_runners=HeldRequests(shares[1]),
    )
    metrics = Metrics()
    apps = {
        _CONTROL: build_control_app(deps, metrics),
        _RUNNER: build_runner_app(deps, metrics, choose_registry(deps)),
    }
    servers = [
        HttpServer(apps[api], ConnectionLimits(shares[api == _RUNNER]), settings.shutdown_s)
        for api in apis
    ]
    return deps, servers, metrics


def _start_background(
    settings: ServerSettings, deps: ServerDeps, metrics: Metrics
) -> list[asyncio.Task[None]]:
    """Start everything that runs beside the requests."""
    deps.hub.attach(asyncio.get_running_loop())
    if removed := deps.sync_folders.remove_stale():
        log.info("stale_sync_folders_removed", count=removed)
    background = [_spawn(run_chore(deps, chore)) for chore in list_chores(deps)]
    background.append(_spawn(run_preparer(deps)))
    background.append(_spawn(metrics.loop.run(deps.clock.monotonic)))
    if deps.db.dialect.crosses_processes:
        background.append(_spawn(listen(settings.database_url, deps.hub, deps.db.name)))
    return background


def choose_registry(deps: Deps) -> ASGIApp | None:
    """Return the app of the embedded registry; None if an external one is configured."""
    return None if deps.registry_url else build_registry_app(deps)


def _spawn(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    return asyncio.create_task(work)


def _open_sockets(settings: ServerSettings) -> dict[str, socket.socket]:
    """Return the listening sockets of the APIs that this process serves."""
    if settings.serve != _ALL and not settings.database:
        raise InvalidInput(
            "one API alone needs PostgreSQL: only one process may use a SQLite database",
            hint="Set EXCLAVE_DATABASE, or leave EXCLAVE_SERVE out.",
        )
    addresses = {
        _CONTROL: (settings.control_host, settings.control_port),
        _RUNNER: (settings.runner_host, settings.runner_port),
    }
    return {
        api: _listen(*address)
        for api, address in addresses.items()
        if settings.serve in {api, _ALL}
    }


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
