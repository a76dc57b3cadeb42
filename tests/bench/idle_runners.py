"""Ten thousand idle runners on one server process: what each costs in memory, and all in CPU."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from exclave.control.runtime.parked_polls import LONGEST_SPREAD_S
from tests.bench.fleet import Task
from tests.bench.report import Measure, say
from tests.bench.seeding import seed_fleet
from tests.bench.servers import Server, raise_limits, run_server

RUNNERS = 10_000
WINDOW_S = 20.0
LOOK_S = 2.0
MOST_LOOKS = 20
QUIET = 20.0
GOAL_KB = 30.0
GOAL_CPU = 2.0


def measure() -> Iterator[Measure]:
    """Hold a poll per runner over real connections, and look at the server process."""
    raise_limits()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        url = f"sqlite:///{data / 'exclave.db'}"
        seeded = seed_fleet(data, url, RUNNERS)
        with run_server(data, url) as server:
            task = Task(
                [server.control_port],
                [server.runner_port],
                seeded.api_token,
                seeded.queues,
                seeded.tokens,
                hold_s=LONGEST_SPREAD_S,
                identities=list(map(asdict, seeded.identities)),
            )
            before = server.read_memory()
            with hold_polls(task) as took:
                say(f"  all polls are sent after {took:.0f} s")
                wait_until_quiet(server)
                percent = read_load(server, WINDOW_S)
                each = (server.read_memory() - before) / RUNNERS / 1024
    yield Measure(
        "idle_runners",
        each,
        "KB per runner",
        f"<= {GOAL_KB:g} KB each and < {GOAL_CPU:g} % CPU",
        met=each <= GOAL_KB and percent < GOAL_CPU,
        detail={
            "runners": RUNNERS,
            "polls_and_tokens_end_every_s": LONGEST_SPREAD_S,
            "cpu_percent": round(percent, 2),
            "window_s": WINDOW_S,
            "sent_in_s": round(took, 1),
        },
    )


def wait_until_quiet(server: Server) -> None:
    """Let the server work off the rush of first polls."""
    for _ in range(MOST_LOOKS):
        if read_load(server, LOOK_S) < QUIET:
            return
    say("  the server did not get quiet")


def read_load(server: Server, seconds: float) -> float:
    """Tell how much of one core the server used over the next seconds, in percent."""
    cpu, begun = server.read_cpu(), time.monotonic()
    time.sleep(seconds)
    return (server.read_cpu() - cpu) / (time.monotonic() - begun) * 100


@contextmanager
def hold_polls(task: Task) -> Iterator[float]:
    """Run the load generator while the block lasts; answers how long opening the polls took."""
    argv = [sys.executable, "-m", "tests.bench.fleet"]
    begun = time.monotonic()
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("the load generator has no pipes")
    try:
        process.stdin.write(json.dumps(asdict(task)) + "\n")
        process.stdin.flush()
        if process.stdout.readline().strip() != "ready":
            raise RuntimeError("the load generator failed")
        yield time.monotonic() - begun
    finally:
        process.communicate("\n")
