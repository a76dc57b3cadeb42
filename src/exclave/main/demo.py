"""The demo: an example app from directory to running install, by the commands a user would type."""

import asyncio
import json
import os
import shutil
import socket
import sys
import tempfile
import urllib.request
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from exclave.base.errors import InvalidInput
from exclave.cli.terminal import print_err
from exclave.main.dev import Dev

INSTALL = "acme"
_READING_S = 1.0
"""A moment for whoever watches to read what is to be approved."""


class DemoFailed(Exception):  # noqa: N818 - it is told to people, not raised at programs
    """A command of the demo did not do what it should."""


async def run_demo(dev: Dev, directory: Path, *, to_the_end: bool) -> bool:
    """Take the app in a directory through its life, maybe to its end; tell whether it went well."""
    if not (directory / "metadata.toml").is_file():
        raise InvalidInput(f"`{directory}` is no app directory", hint="Name one with --demo DIR.")
    try:
        async with _choose_directory(directory) as app:
            demo = _Demo(dev, app)
            await demo.run()
            if to_the_end:
                await demo.take_down()
    except DemoFailed as failed:
        print_err(f"\n{failed}")
        return False
    return True


@asynccontextmanager
async def _choose_directory(directory: Path) -> AsyncIterator[Path]:
    """Leave the policies out where their tool is missing: a policy is never passed unseen."""
    if shutil.which("opa") or not (directory / "policies").is_dir():
        yield directory
        return
    print_err("opa is not on the PATH: the demo leaves the app's policies out.\n")
    with tempfile.TemporaryDirectory(prefix="exclave-demo-") as folder:
        copy = Path(folder) / directory.name
        shutil.copytree(directory, copy, ignore=shutil.ignore_patterns("policies"))
        yield copy


class _Demo:
    def __init__(self, dev: Dev, directory: Path) -> None:
        self._dev = dev
        self._directory = directory
        self._app = directory.name

    async def run(self) -> None:
        if self._app not in await self._names("apps", "list"):
            await self._say("apps", "create", self._app)
        await self._say(
            "apps",
            "sync",
            str(self._directory),
            "--wait",
            shown=("apps", "sync", self._app, "--wait"),
        )
        if INSTALL in await self._names("installs", "list"):
            print_err(f"\nThe install `{INSTALL}` is there from an earlier run.")
        else:
            await self._provision()
        await self._say("actions", "run", INSTALL, "check", "--wait")
        await self._say("installs", "approve-all", INSTALL, "on", "--yes")
        size = int(await self._read("inputs", "inputs", "cache_size")) + 50
        await self._say("installs", "inputs", "set", INSTALL, f"cache_size={size}", "--wait")
        await self._say("installs", "readme", INSTALL)
        await self._visit()

    async def take_down(self) -> None:
        """Leave nothing behind: no process, no file, no resource."""
        await self._say("installs", "deprovision", INSTALL, "--wait", "--yes")

    async def _provision(self) -> None:
        """Create the install, look at the first plan, approve it, then let the rest go."""
        port = f"port={_find_port()}"
        await self._say(
            "installs", "create", self._app, "--name", INSTALL, "--here", "--input", port
        )
        workflow = (await self._ask("workflows", "list", "--install", INSTALL))["items"][0]["id"]
        gate = await self._await_gate(workflow)
        await self._say("workflows", "plan", INSTALL, "sandbox-plan")
        await asyncio.sleep(_READING_S)
        await self._say("workflows", "approve", INSTALL, "--digest", gate, quiet=True)
        await self._say("workflows", "approve-all", INSTALL, "--yes", quiet=True)
        await self._say("workflows", "watch", INSTALL)

    async def _await_gate(self, workflow: str) -> str:
        while True:
            shown = await self._ask("workflows", "get", workflow)
            for step in shown["steps"]:
                if step["kind"] == "gate" and step["state"] == "active":
                    return str(step["digest"])
            if shown["state"] != "running":
                raise DemoFailed(f"the workflow is {shown['state']} before it asked anything")
            await asyncio.sleep(0.2)

    async def _visit(self) -> None:
        url = await self._read("components", "page", "outputs", "url")
        page = await asyncio.to_thread(_fetch, url)
        print_err(f"\n$ curl {url}\n{page.strip()}")

    async def _read(self, *path: str) -> str:
        """Read a value of the install's state."""
        value = (await self._ask("installs", "state", INSTALL))["document"]
        for key in path:
            value = value[key]
        return str(value)

    async def _names(self, *words: str) -> set[str]:
        return {each["name"] for each in (await self._ask(*words))["items"]}

    async def _ask(self, *words: str) -> dict[str, Any]:
        """Run a command for its data."""
        child = await self._start(*words, "--json", stdout=asyncio.subprocess.PIPE)
        out, _ = await child.communicate()
        if child.returncode:
            raise DemoFailed(f"`exclave {' '.join(words)}` failed")
        found: dict[str, Any] = json.loads(out)
        return found

    async def _say(self, *words: str, shown: tuple[str, ...] = (), quiet: bool = False) -> None:
        """Run a command in front of whoever watches."""
        print_err(f"\n$ exclave {' '.join(shown or words)}")
        out = asyncio.subprocess.DEVNULL if quiet else None
        child = await self._start(*words, stdout=out)
        try:
            code = await child.wait()
        finally:
            if child.returncode is None:
                child.terminate()
        if code:
            raise DemoFailed(f"`exclave {' '.join(words)}` ended with {code}")

    async def _start(self, *words: str, stdout: int | None) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "exclave",
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=stdout,
            env=self._env(),
        )

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
