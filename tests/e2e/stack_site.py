"""A server with an install of an app, for tests that run the customer's Stack for real."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from exclave.control.access import authenticate_user
from exclave.control.orgs.accounts import create_org
from exclave.main.composition import build_deps
from exclave.main.settings import ServerSettings
from tests.faults.site import TIMINGS, KillableProcess, clean_env, exclave, find_port, wait_until
from tests.support.installs import make_app

SECRETS: tuple[Mapping[str, Any], ...] = (
    {"name": "db_password", "description": "For the database.", "required": True},
    {"name": "session_key", "description": "Signs cookies.", "auto_generate": True},
)


@dataclass
class Vendor:
    """One control plane with an app."""

    folder: Path
    client: httpx.Client

    def make_install(self, name: str) -> "StackSite":
        body = {"name": name, "app": "shop", "inputs": {"domain": "a.test"}, "provision": False}
        reply = self.client.post("/v1/installs", json=body)
        assert reply.status_code == 201, reply.text
        return StackSite(self.folder / name, self.client, reply.json()["id"], self.folder)


@dataclass
class StackSite:
    """One install of an app, and a place for the customer's Stack."""

    folder: Path
    client: httpx.Client
    install: str
    vendor: Path
    env: Mapping[str, str] = field(default_factory=dict)
    """What the customer sets before the Stack is run."""

    @property
    def stack(self) -> Path:
        return self.folder / "customer" / "stack"

    def get(self, path: str, **query: Any) -> Any:
        reply = self.client.get(path, params=query)
        assert reply.status_code == 200, (path, reply.text)
        return reply.json()

    def post(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        reply = self.client.post(path, json=body or {})
        assert reply.status_code < 300, (path, reply.text)
        return reply.json()

    def make_stack(self) -> Any:
        return self.post(f"/v1/installs/{self.install}/stack")

    def make_script(self) -> str:
        """Create a Stack and return its only file."""
        (file,) = self.make_stack()["files"]
        return str(file["content"])

    def run_script(
        self, script: str, *words: str, python: str = sys.executable, check: bool = True
    ) -> "subprocess.CompletedProcess[str]":
        """Pipe the script into Python, as the customer's command does."""
        argv = [python, "-", "--folder", str(self.stack), *words]
        return self.run(argv, stdin=script, check=check)

    def run_stack(self, *words: str, stdin: str = "", check: bool = True) -> Any:
        done = self.run([str(self.stack / "stack"), *words, "--json"], stdin=stdin, check=check)
        return json.loads(done.stdout) if done.stdout else json.loads(done.stderr)

    def run(
        self, argv: list[str], *, stdin: str = "", check: bool = True
    ) -> "subprocess.CompletedProcess[str]":
        customer = self.folder / "customer"
        customer.mkdir(parents=True, exist_ok=True)
        env = {**clean_env({}), "HOME": str(customer), "PYTHONPATH": "", **self.env}
        done = subprocess.run(
            argv,
            input=stdin,
            env=env,
            cwd=customer,
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
        assert not check or done.returncode == 0, (argv, done.stdout, done.stderr, self.read_log())
        return done

    def read_log(self) -> str:
        logs = self.stack / "logs"
        return "".join(file.read_text() for file in sorted(logs.glob("*"))) if logs.exists() else ""

    def find_runner(self) -> Any:
        found = self.get("/v1/runners", limit=100, queue_id=self.install)["items"]
        return found[-1] if found else None

    def wait_for_presence(self, presence: str) -> Any:
        def look() -> Any:
            runner = self.find_runner()
            return runner if runner and runner["presence"] == presence else None

        return wait_until(look, f"the runner is {presence}")

    def list_processes(self) -> str:
        """List processes that have the customer's folder in their command line."""
        found = []
        for file in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = file.read_bytes()
            except OSError:
                continue
            if (
                str(self.folder / "customer").encode() in words
                and str(os.getpid()) != file.parent.name
            ):
                found.append(words.replace(b"\0", b" ").decode())
        return "\n".join(found)


@contextmanager
def open_vendor(folder: Path) -> Iterator[Vendor]:
    """Make an org and an app, then serve them."""
    control, runner = find_port(), find_port()
    url = f"http://127.0.0.1:{runner}"
    settings = ServerSettings(data=folder / "data", runner_url=url)
    token = asyncio.run(_prepare(settings))
    env = clean_env(
        {
            **TIMINGS,
            "CONTROL_PORT": str(control),
            "RUNNER_PORT": str(runner),
            "RUNNER_URL": url,
            "LOG_LEVEL": "info",
        }
    )
    argv = [*exclave(), "server", "--data", str(folder / "data")]
    server = KillableProcess(argv, env, folder / "server.log")
    server.start()
    client = httpx.Client(base_url=f"http://127.0.0.1:{control}", timeout=30)
    client.headers["Authorization"] = f"Bearer {token}"
    try:
        wait_until(lambda: _answers(client), "the server answers")
        yield Vendor(folder, client)
    finally:
        client.close()
        server.stop()


@contextmanager
def end_stack(site: StackSite) -> Iterator[StackSite]:
    """Stop the Stack whatever happens."""
    try:
        yield site
    finally:
        if (site.stack / "stack").exists():
            site.run([str(site.stack / "stack"), "stop"], check=False)


async def _prepare(settings: ServerSettings) -> str:
    deps = build_deps(settings)
    try:
        made = await deps.db.write(lambda tx: create_org(tx, deps, "acme", "admin"))
        user = await authenticate_user(deps, made.token)
        await make_app(deps, user, "shop", secrets=SECRETS)
    finally:
        deps.db.close()
    return made.token


def _answers(client: httpx.Client) -> bool:
    try:
        return client.get("/v1/whoami").status_code == 200
    except httpx.TransportError:
        return False
