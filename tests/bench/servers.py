"""Real servers for the benches over HTTP: `exclave server` as a process of its own."""

import contextlib
import os
import resource
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.bench.report import say

START_TIMEOUT_S = 30.0
LOG_SHOWN = 2000
MOST_FILES = 24_000
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Server:
    """A server at work."""

    pid: int
    control_port: int
    runner_port: int

    def read_memory(self) -> int:
        """Tell the bytes of memory that the process holds."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * _PAGE

    def read_cpu(self) -> float:
        """Tell the seconds of CPU time that the process has used."""
        return read_cpu(self.pid)


def read_cpu(pid: int) -> float:
    """Tell the seconds of CPU time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


@contextlib.contextmanager
def run_server(data: Path, url: str) -> Iterator[Server]:
    """Run a server on an existing database until the block ends."""
    ports = [_find_port(), _find_port()]
    argv = [sys.executable, "-m", "exclave.main.entry", "server", "--data", str(data)]
    argv += ["--database", url, "--control-port", str(ports[0]), "--runner-port", str(ports[1])]
    env = {k: v for k, v in os.environ.items() if not k.startswith("EXCLAVE_")}
    env["EXCLAVE_LOG_LEVEL"] = "warning"
    raise_limits()
    log = data / f"server-{ports[0]}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(argv, env=env, stdout=out, stderr=out)
    try:
        _wait_ready(process, ports)
        yield Server(process.pid, *ports)
    finally:
        process.kill()  # nothing of it is needed any more, and thousands of polls would hang on
        process.wait()
        if log.stat().st_size:
            say(f"  the server said: {log.read_text(errors='replace')[:LOG_SHOWN]}")


def raise_limits() -> None:
    """Allow this process and its children as many connections as the benches hold."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_FILES if hard == resource.RLIM_INFINITY else min(MOST_FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _find_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_ready(process: "subprocess.Popen[bytes]", ports: list[int]) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    for port in ports:
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError("the server did not start") from None
                time.sleep(0.05)
