"""What a command runs with: `Deps`, `Session` with client and output, and the `verb` decorator."""

import asyncio
import functools
import sys
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import httpx

from exclave.base.clock import Clock, SystemClock
from exclave.base.errors import InvalidInput
from exclave.base.ids import Ids, SystemRandomness
from exclave.base.secrets import Secret
from exclave.cli.config import find_login
from exclave.cli.output import Output
from exclave.cli.terminal import ask
from exclave.client.control import ControlClient
from exclave.client.control_http import ControlHttp

Body = Callable[..., Coroutine[Any, Any, int | None]]


@dataclass(frozen=True, slots=True)
class Deps:
    """The outside world of a command; tests replace it."""

    env: Mapping[str, str]
    cwd: Path
    clock: Clock
    ids: Ids
    can_ask: bool
    """Whether there is a terminal at which the user can be asked."""
    is_terminal: bool
    """Whether stdout is a terminal."""
    transport: httpx.AsyncBaseTransport | None = None


def read_system(env: Mapping[str, str]) -> Deps:
    """Return the dependencies of a real process."""
    clock = SystemClock()
    return Deps(
        env=env,
        cwd=Path.cwd(),
        clock=clock,
        ids=Ids(clock, SystemRandomness()),
        can_ask=sys.stdin.isatty() and sys.stderr.isatty(),
        is_terminal=sys.stdout.isatty(),
    )


@dataclass(slots=True)
class Session:
    """One run of one command."""

    deps: Deps
    out: Output
    _opened: list[ControlClient] = field(default_factory=list)

    @property
    def client(self) -> ControlClient:
        """The client for the current login, created on first use."""
        if not self._opened:
            login = find_login(self.deps.env, self.deps.cwd)
            return self.connect(login.url, login.token)
        return self._opened[0]

    def connect(self, url: str, token: Secret) -> ControlClient:
        """Return a client of a server with a token."""
        deps = self.deps
        http = ControlHttp(
            url, token.reveal(), clock=deps.clock, ids=deps.ids, transport=deps.transport
        )
        self._opened.append(ControlClient(http))
        return self._opened[-1]

    def confirm(self, question: str, *, yes: bool) -> None:
        """Ask for confirmation; abort if it is denied, raise if there is no terminal to ask."""
        if yes:
            return
        if not self.deps.can_ask:
            raise InvalidInput(
                f"this needs a confirmation, and there is no terminal to ask: {question}",
                hint="Add --yes if you are sure.",
            )
        if not ask(question):
            raise click.Abort

    async def close(self) -> None:
        """Close all clients."""
        for client in self._opened:
            await client.close()


def verb(group: click.Group, name: str) -> Callable[[Body], click.Command]:
    """Return a decorator that makes an async function a command of a noun, with `--json`."""

    def decorate(body: Body) -> click.Command:
        @functools.wraps(body)
        def run(*, json_mode: bool, **arguments: object) -> None:
            context = click.get_current_context()
            code = asyncio.run(_drive(_open_session(context, json_mode=json_mode), body, arguments))
            context.exit(code or 0)

        flag = click.option("--json", "json_mode", is_flag=True, help="Print the result as JSON.")
        return group.command(name)(flag(run))

    return decorate


yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")


async def _drive(session: Session, body: Body, arguments: Mapping[str, object]) -> int | None:
    try:
        return await body(session, **arguments)
    finally:
        await session.close()


def _open_session(context: click.Context, *, json_mode: bool) -> Session:
    obj = context.find_root().obj
    deps = obj if isinstance(obj, Deps) else read_system(obj or {})
    colour = deps.is_terminal and not deps.env.get("NO_COLOR")
    return Session(deps, Output(json_mode=json_mode, terminal=deps.is_terminal, colour=colour))
