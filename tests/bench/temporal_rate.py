"""The baseline: the same workflows on Temporal's dev server, on a file, with the same durability."""

import asyncio
import contextlib
import importlib.util
import itertools
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

from tests.bench.flows import Rate, answer_all, run_many

T = TypeVar("T")

SECONDS = 8.0
WARM_UP_S = 1.0
IN_FLIGHT = 20
"""More in flight make the dev server slower, not faster."""
QUEUE = "bench"
START_TIMEOUT_S = 30.0


def find_program() -> Path | None:
    """Find Temporal beside this Python; None if `requirements/bench.lock` is not installed."""
    program = Path(sys.executable).with_name("temporal")
    found = importlib.util.find_spec("temporalio") is not None and program.is_file()
    return program if found else None


def measure(program: Path) -> Rate:
    """Run workflows on a private server; tell how many ended per second."""
    with _serve(program) as address:
        return asyncio.run(_measure(address))


@contextlib.contextmanager
def _serve(program: Path) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        argv = [str(program), "server", "start-dev", "--headless", "--log-level", "error"]
        argv += ["--ip", "127.0.0.1", "--port", str(port), "--db-filename", f"{folder}/t.db"]
        argv += ["--sqlite-pragma", "journal_mode=WAL", "--sqlite-pragma", "synchronous=FULL"]
        process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()


async def _measure(address: str) -> Rate:
    # Installed for benches only, so not imported before somebody wants to measure it.
    from temporalio.client import Client  # noqa: PLC0415
    from temporalio.worker import Worker  # noqa: PLC0415

    from tests.bench.temporal_flow import Graph  # noqa: PLC0415

    async def connect() -> Client:
        return await Client.connect(address)

    client = await _try_until(connect)
    numbers = itertools.count()

    async def one() -> None:
        handle = await client.start_workflow(
            Graph.run, id=f"bench-{next(numbers)}", task_queue=QUEUE
        )
        await answer_all(lambda step: handle.signal(Graph.answer, step))
        await handle.result()

    async with Worker(client, task_queue=QUEUE, workflows=[Graph]):
        await run_many(one, in_flight=IN_FLIGHT, seconds=WARM_UP_S)
        return await run_many(one, in_flight=IN_FLIGHT, seconds=SECONDS)


async def _try_until(connect: Callable[[], Awaitable[T]]) -> T:
    """Connect to a server that is about to start."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            return await connect()
        except RuntimeError:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.1)
