"""What commands that run a process share: logging, the event loop, output."""

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any

import click

from exclave.base.logs import Log, set_up_logs
from exclave.cli.terminal import print_json, print_out
from exclave.main.environment import find_unknown

log = Log("main")

json_option = click.option("--json", "json_mode", is_flag=True, help="Print the result as JSON.")


def environment() -> Mapping[str, str]:
    """Return the environment that this command line was started with."""
    root_object = click.get_current_context().find_root().obj
    return root_object if isinstance(root_object, Mapping) else {}


def begin_logs(level: str) -> None:
    """Log as JSON lines on stderr, and warn about unknown settings."""
    set_up_logs(level)
    for sentence in find_unknown(environment()):
        log.warning("setting_unknown", message=sentence)


def run_async(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine, on uvloop where it is installed."""
    try:
        import uvloop  # noqa: PLC0415 - a runner has no need of it
    except ImportError:
        asyncio.run(work)
    else:
        uvloop.run(work)


def answer(value: Mapping[str, object], text: str, *, json_mode: bool) -> None:
    """Print the result of a command on stdout, as text or JSON."""
    if json_mode:
        print_json(value, indent=None)
    else:
        print_out(text)
