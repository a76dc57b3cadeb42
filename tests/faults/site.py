"""Server and runner processes for fault tests, which can be killed and started again."""

import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from exclave.control.orgs.accounts import create_org
from exclave.main.composition import build_deps
from exclave.main.settings import ServerSettings
from tests.faults.balancer import Balancer

TIMINGS = {
    "POLL_HOLD_S": "2", "RENEW_S": "0.3", "LATE_AFTER_S": "1", "LOST_AFTER_S": "3",
    "DEADMAN_READ_ONLY_S": "4", "LOST_READ_ONLY_S": "6", "DEADMAN_MUTATING_S": "30",
    "CANCEL_GRACE_S": "2", "CANCEL_GRACE_MUTATING_S": "5", "LOST_MUTATING_S": "90",
    "START_GRACE_S": "5", "OFFER_S": "3",
}  # fmt: skip
PATIENCE_S = 60.0
UNHURRIED = {
    **TIMINGS, "LATE_AFTER_S": "10", "LOST_AFTER_S": "20", "DEADMAN_READ_ONLY_S": "20",
    "LOST_READ_ONLY_S": "30", "START_GRACE_S": "20", "OFFER_S": "20",
}  # fmt: skip
"""For sites whose runner must not count as lost when the machine is busy."""


@dataclass
class KillableProcess:
    """A server or runner process that can be killed and restarted."""

    argv: list[str]
    env: dict[str, str]
    output: Path
    running: "subprocess.Popen[bytes] | None" = None
    limits: Mapping[int, int] = field(default_factory=dict)
    """Resource limits of the process, such as `resource.RLIMIT_DATA`."""

    def start(self) -> None:
        with self.output.open("ab") as out:
            self.running = subprocess.Popen(
                self.argv,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        for kind, most in self.limits.items():
            resource.prlimit(self.running.pid, kind, (most, most))

    def kill9(self) -> None:
        """Kill only this process; its children are left behind, as in a real crash."""
        if self.running is not None:
            self.running.kill()
            self.running.wait()

    def stop(self) -> None:
        if self.running is not None and self.running.poll() is None:
            self.running.send_signal(signal.SIGTERM)
            try:
                self.running.wait(30)
            except subprocess.TimeoutExpired:
                self.kill9()


@dataclass
class Site:
    """Servers on one database behind a load balancer, a runner and a client."""

    folder: Path
    database: str
    servers: list[KillableProcess]
    ports: list[tuple[int, int]]
    balancers: tuple[Balancer, Balancer]
    timings: Mapping[str, str] = field(default_factory=lambda: TIMINGS)
    token: str = ""
    install: str = ""
    runner: KillableProcess | None = None
    runners: list[KillableProcess] = field(default_factory=list)
    client: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        self.client = httpx.Client(base_url=self.balancers[0].url, timeout=30)

    def begin(self) -> None:
        """Create the org, start the servers, create the install and start its runner."""
        self.begin_servers()
        self.install = self.post("/v1/installs", {"name": "prod"})["id"]
        self.runner = self.start_runner("runner", self.install)

    def begin_servers(self) -> None:
        """Create the org and start the servers."""
        self.token = self.add_org("acme")
        self.client.headers["Authorization"] = f"Bearer {self.token}"
        for server in self.servers:
            server.start()
        self.wait_for_server()

    def add_org(self, name: str) -> str:
        """Create an org as `exclave server init` does, and return its admin's token.

        It is done here because a process of its own takes two seconds of CPU time to begin.
        """
        deps = build_deps(ServerSettings(data=self.folder / "data", database=self.database))
        try:
            return deps.db.write_now(lambda tx: create_org(tx, deps, name, "admin")).token
        finally:
            deps.db.close()

    def start_runner(self, name: str, queue: str, **settings: str) -> KillableProcess:
        """Start a runner for a queue, in its own folder."""
        enrolment = self.post("/v1/enrolments", {"queue_id": queue})["token"]
        return self.start_enrolled(name, enrolment, **settings)

    def start_enrolled(self, name: str, enrolment: str, **settings: str) -> KillableProcess:
        """Start a runner that enrols with the given token."""
        words = ["runner", "--data", str(self.folder / name), "--url", self.balancers[1].url]
        env = clean_env({"ENROLMENT": enrolment, "LOG_LEVEL": "info", **settings})
        runner = KillableProcess([*exclave(), *words], env, self.folder / f"{name}.log")
        self.runners.append(runner)
        runner.start()
        return runner

    def server_words(self) -> list[str]:
        words = ["--data", str(self.folder / "data")]
        return [*words, "--database", self.database] if self.database else words

    def wait_for_server(self) -> None:
        wait_until(lambda: self.try_get("/v1/whoami") is not None, "the server answers")

    def end(self) -> None:
        for process in [*self.runners, *self.servers]:
            process.stop()
        self.client.close()
        for balancer in self.balancers:
            balancer.stop()

    def post(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Post, retrying while servers are down."""

        def attempt() -> dict[str, Any] | None:
            try:
                reply = self.client.post(path, json=body or {}, headers={"Idempotency-Key": key})
            except httpx.TransportError:
                return None
            if reply.status_code >= 500:
                return None
            assert reply.status_code < 300, (path, reply.status_code, reply.text)
            return dict(reply.json())

        key = f"key-{time.monotonic_ns()}"
        return dict(wait_until(attempt, f"POST {path}"))

    def get(self, path: str, **query: Any) -> Any:
        """Get, retrying while servers are down."""
        return wait_until(lambda: self.try_get(path, **query), f"GET {path}")

    def try_get(self, path: str, **query: Any) -> Any | None:
        try:
            reply = self.client.get(path, params=query)
        except httpx.TransportError:
            return None
        if reply.status_code >= 500:
            return None
        assert reply.status_code == 200, (path, reply.status_code, reply.text)
        return reply.json()

    def read_log(self, job: str, execution: str) -> list[dict[str, Any]]:
        """Return the whole stored log of an execution."""
        records: list[dict[str, Any]] = []
        offset = 0
        while True:
            page = self.get(f"/v1/jobs/{job}/logs", execution=execution, offset=offset, limit=1000)
            records += page["records"]
            if not page["records"]:
                return records
            offset = page["next_offset"]


def make_site(
    folder: Path, database: str = "", servers: int = 1, timings: Mapping[str, str] = TIMINGS
) -> Site:
    """Return a site; only its load balancers run yet."""
    ports = [(find_port(), find_port()) for _ in range(servers)]
    balancers = (Balancer([c for c, _ in ports]), Balancer([r for _, r in ports]))
    site = Site(folder, database, [], ports, balancers, timings)
    for number, (control, runner) in enumerate(ports):
        env = clean_env(
            {
                **timings,
                "CONTROL_PORT": str(control),
                "RUNNER_PORT": str(runner),
                "RUNNER_URL": balancers[1].url,
                "LOG_LEVEL": "info",
            }
        )
        argv = [*exclave(), "server", *site.server_words()]
        site.servers.append(KillableProcess(argv, env, folder / f"server-{number}.log"))
    return site


@contextmanager
def open_site(folder: Path, database: str = "", *, servers: int = 1) -> Iterator[Site]:
    """Start a site and stop it at the end, also if the start fails."""
    site = make_site(folder, database, servers=servers)
    try:
        site.begin()
        yield site
    finally:
        site.end()


def check_log_numbers(site: Site, job: str, execution: str) -> None:
    """Check that a log has no gap and no duplicate."""
    numbers = [record["n"] for record in site.read_log(job, execution)]
    assert numbers == list(range(len(numbers))), "a gap or a double in the log"


def exclave() -> list[str]:
    return [sys.executable, "-m", "exclave"]


def clean_env(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a process; by default jobs run as the same user."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("EXCLAVE_")}
    ours = {"RUN_AS": "none", **settings}
    return {**kept, **{f"EXCLAVE_{name}": value for name, value in ours.items()}}


def find_port() -> int:
    """Return an unused port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(look: Callable[[], Any], what: str, seconds: float = PATIENCE_S) -> Any:
    """Poll a function until it returns a true value, and return that."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = look()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"waited {seconds:g} s in vain: {what}")
