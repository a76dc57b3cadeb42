"""The demo of `exclave dev --demo`: deploys an example app with the commands a user would type."""

import asyncio
import os
import shutil
import socket
import sys
import tempfile
import urllib.request
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from exclave.base.errors import InvalidInput, Problem
from exclave.base.json_values import Json, require_object
from exclave.cli.terminal import print_err
from exclave.client.control import ControlClient
from exclave.client.pages import iterate
from exclave.main.dev import Dev
from exclave.wire.workflows import StepKind, StepState, WorkflowState

INSTALL = "acme"
_READING_S = 1.0
"""Time for the reader to look at the plan before the demo approves it."""


class DemoFailed(Exception):  # noqa: N818 - a message for people, not for callers
    """A command of the demo failed."""


async def run_demo(dev: Dev, directory: Path, *, to_the_end: bool) -> bool:
    """Deploy and change the app of a directory, optionally remove it; return whether all worked."""
    if not (directory / "metadata.toml").is_file():
        raise InvalidInput(
            f"`{directory}` is not an app directory", hint="Pass the path of one: --demo DIR."
        )
    try:
        async with (
            _choose_directory(directory) as app,
            ControlClient.open(dev.running.control_url, dev.token) as client,
        ):
            demo = _Demo(dev, app, client)
            await demo.run()
            if to_the_end:
                await demo.deprovision()
    except DemoFailed as failure:
        print_err(f"\n{failure}")
        return False
    except Problem as problem:
        print_err(f"\n{problem.message}")
        return False
    return True


@asynccontextmanager
async def _choose_directory(directory: Path) -> AsyncIterator[Path]:
    """Yield the directory, or a copy without policies if opa, which evaluates them, is missing."""
    if shutil.which("opa") or not (directory / "policies").is_dir():
        yield directory
        return
    print_err("opa is not on the PATH: the demo runs without the app's policies.\n")
    with tempfile.TemporaryDirectory(prefix="exclave-demo-") as folder:
        copy = Path(folder) / directory.name
        shutil.copytree(directory, copy, ignore=shutil.ignore_patterns("policies"))
        yield copy


class _Demo:
    def __init__(self, dev: Dev, directory: Path, client: ControlClient) -> None:
        self._dev = dev
        self._client = client
        self._directory = directory
        self._app = directory.name

    async def run(self) -> None:
        if self._app not in [app.name async for app in iterate(self._client.apps.list)]:
            await self._run("apps", "create", self._app)
        await self._run(
            "apps",
            "sync",
            str(self._directory),
            "--wait",
            shown=("apps", "sync", self._app, "--wait"),
        )
        if await self._find_install():
            print_err(f"\nThe install `{INSTALL}` exists from an earlier run.")
        else:
            await self._provision()
        await self._run("actions", "run", INSTALL, "check", "--wait")
        await self._run("installs", "approve-all", INSTALL, "on", "--yes")
        size = int(await self._read_state("inputs", "inputs", "cache_size")) + 50
        await self._run("installs", "inputs", "set", INSTALL, f"cache_size={size}", "--wait")
        await self._run("installs", "readme", INSTALL)
        await self._show_page()

    async def deprovision(self) -> None:
        """Remove everything that the demo created: processes, files, resources."""
        await self._run("installs", "deprovision", INSTALL, "--wait", "--yes")

    async def _provision(self) -> None:
        """Create the install, show and approve its first plan, approve all others in advance."""
        port = f"port={_find_port()}"
        await self._run(
            "installs", "create", self._app, "--name", INSTALL, "--here", "--input", port
        )
        digest = await self._wait_for_plan()
        await self._run("workflows", "plan", INSTALL, "sandbox-plan")
        await asyncio.sleep(_READING_S)
        await self._run("workflows", "approve", INSTALL, "--digest", digest, quiet=True)
        await self._run("workflows", "approve-all", INSTALL, "--yes", quiet=True)
        await self._run("workflows", "watch", INSTALL)

    async def _wait_for_plan(self) -> str:
        """Return the digest of the plan for which the install's newest workflow waits."""
        install_id = await self._find_install()
        newest = (await self._client.workflows.list(limit=1, queue_id=install_id)).items[0]
        async for workflow in self._client.workflows.follow(newest.id):
            for step in workflow.steps:
                if step.kind is StepKind.GATE and step.state is StepState.ACTIVE:
                    return str(step.digest)
            if workflow.state is not WorkflowState.RUNNING:
                raise DemoFailed(f"the workflow ended as {workflow.state} before its first plan")
        raise DemoFailed("the workflow ended before its first plan")

    async def _show_page(self) -> None:
        url = await self._read_state("components", "page", "outputs", "url")
        page = await asyncio.to_thread(_fetch, url)
        print_err(f"\n$ curl {url}\n{page.strip()}")

    async def _read_state(self, *path: str) -> str:
        """Return a value of the install's state."""
        install_id = await self._find_install()
        value: Json = (await self._client.installs.get_state(install_id)).document
        for key in path:
            value = require_object(value, "the state of the install")[key]
        return str(value)

    async def _find_install(self) -> str:
        """Return the id of the demo's install, or an empty text."""
        page = await self._client.installs.list(limit=1, name=INSTALL)
        return page.items[0].id if page.items else ""

    async def _run(self, *words: str, shown: tuple[str, ...] = (), quiet: bool = False) -> None:
        """Run a command and show it."""
        print_err(f"\n$ exclave {' '.join(shown or words)}")
        out = asyncio.subprocess.DEVNULL if quiet else None
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "exclave",
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=out,
            env=self._env(),
        )
        try:
            code = await child.wait()
        finally:
            if child.returncode is None:
                child.terminate()
        if code:
            raise DemoFailed(f"`exclave {' '.join(words)}` failed with exit code {code}")

    def _env(self) -> Mapping[str, str]:
        return {
            **os.environ,
            "EXCLAVE_URL": self._dev.running.control_url,
            "EXCLAVE_TOKEN": self._dev.token,
        }


def _find_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as reply:  # noqa: S310 - the page of the demo
        return str(reply.read().decode())
