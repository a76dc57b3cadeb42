"""uvicorn with several servers in one process and limits on connections."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Iterator

import uvicorn
from starlette.types import ASGIApp

from exclave.main.acceptor import Acceptor
from exclave.main.connections import ConnectionLimits, GuardedProtocol, make_protocol

_TICK_S = 1.0
_KEEP_ALIVE_S = 75


class HttpServer(uvicorn.Server):
    """Serves an app on a socket until `stop`; leaves signals to its caller."""

    def __init__(self, app: ASGIApp, limits: ConnectionLimits, shutdown_s: float) -> None:
        """Serve an app; requests in progress at the stop get `shutdown_s` more seconds."""
        protocol = make_protocol(limits)
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                server_header=False,
                http=protocol,
                proxy_headers=False,  # the client's address is not used
                timeout_keep_alive=_KEEP_ALIVE_S,
                timeout_graceful_shutdown=int(shutdown_s),
                lifespan="off",
            )
        )
        # Without a level, uvicorn would format a log line per connection.
        logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
        self.acceptors: list[Acceptor] = []
        self._limits = limits
        self._protocol = protocol
        self._stopping = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the acceptor instead of uvicorn's, which would accept all connections at once."""
        for listening in sockets or []:
            acceptor = Acceptor(listening, self._limits, self._make_protocol, self._count_served)
            acceptor.start()
            self.acceptors.append(acceptor)
        self.servers = self.acceptors  # type: ignore[assignment] # it calls close and wait_closed
        self.started = True

    def stop(self) -> None:
        """Finish open requests, then return from `serve`."""
        self.should_exit = True
        self._stopping.set()

    async def main_loop(self) -> None:
        """Update the date header once a second; uvicorn would wake up ten times a second."""
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), _TICK_S)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture nothing: there may be several servers in one process."""
        yield

    def count_connections(self) -> int:
        """Return how many connections are open."""
        return self._count_served() + sum(acceptor.count() for acceptor in self.acceptors)

    def _make_protocol(self) -> GuardedProtocol:
        return self._protocol(config=self.config, server_state=self.server_state, app_state={})

    def _count_served(self) -> int:
        return len(self.server_state.connections)
