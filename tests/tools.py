"""Real tools for tests, built once from the Go module proxy and kept by version in the user's cache.

Without Go, or without the proxy, tests that need a tool are skipped by name. With
`EXCLAVE_TEST_TOOLS=required`, as in CI, they fail instead.
"""

import asyncio
import fcntl
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from exclave.runner.processes import Command
from exclave.runner.tools.finder import ToolFinder, ToolSettings
from exclave.runner.work import WorkFailed

FOLDER = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "exclave" / "tools"
MODULES = {
    "opa": ("github.com/open-policy-agent/opa", "v1.22.0"),
    "crane": ("github.com/google/go-containerregistry/cmd/crane", "v0.22.0"),
    "registry": ("github.com/distribution/distribution/v3/cmd/registry", "v3.1.2"),
    "regctl": ("github.com/regclient/regclient/cmd/regctl", "v0.11.7"),
    "terraform-provider-time": ("github.com/hashicorp/terraform-provider-time", "v0.14.2"),
}
"""Where each tool comes from, and the version that the tests were written for."""

BUILD_S = 900


def need_tool(name: str) -> Path:
    """Give the path of a tool; without it the test is skipped, or fails where it must not be."""
    module, version = MODULES[name]
    target = FOLDER / f"{name}-{version}" / name
    if not target.exists() and (problem := _build(module, version, target)):
        give_up(f"{name} {version} is not there and could not be built: {problem}")
    return target


def need_terraform() -> Path:
    """Give the path of terraform, which has to be installed."""
    return _need_on_path("terraform")


def need_skopeo() -> Path:
    """Give the path of skopeo, which has to be installed."""
    return _need_on_path("skopeo")


def _need_on_path(name: str) -> Path:
    found = shutil.which(name)
    if found is None:
        give_up(f"{name} is not on the PATH")
    return Path(found or "")


def need_tofu() -> Path:
    """Give the path of tofu, built as a runner builds it: slowly, and only where it is asked for."""
    with ThreadPoolExecutor(1) as thread:
        try:
            return Path(thread.submit(asyncio.run, _find_by_runner("tofu")).result())
        except WorkFailed as failed:
            give_up(failed.message)
    return Path()


def need_helm() -> Path:
    """Give the path of helm, which comes with the development dependencies."""
    found = Path(sys.executable).with_name("helm")
    if not found.exists():
        give_up("helm is not there: install the development dependencies (`make test` does)")
    return found


async def run_command(command: Command, seconds: float) -> tuple[int, str]:
    """Run a command as the runner's finder of tools asks for it."""
    process = await asyncio.create_subprocess_exec(
        *command.argv, env=dict(command.env), cwd=command.cwd,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    out, _ = await asyncio.wait_for(process.communicate(), seconds)
    return process.returncode or 0, out.decode()


async def _find_by_runner(name: str) -> str:
    path = os.environ["PATH"]
    settings = ToolSettings(folder=FOLDER / "runner", path=path, download=False, build=True)
    env = {"PATH": path, "HOME": str(FOLDER)}
    return (await ToolFinder(settings).find(name, "", env=env, run=run_command)).path


def _build(module: str, version: str, target: Path) -> str:
    """Build a tool, one test process at a time; tell what went wrong."""
    go = shutil.which("go")
    if go is None:
        return "it needs Go on the PATH"
    target.parent.mkdir(parents=True, exist_ok=True)
    with (target.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.exists():
            return ""
        aside = target.parent / "new"
        env = {
            **os.environ, "GOBIN": str(aside), "CGO_ENABLED": "0", "GOTOOLCHAIN": "local",
            "GOFLAGS": "-mod=mod -buildvcs=false",
        }  # fmt: skip
        argv = [go, "install", f"{module}@{version}"]
        done = subprocess.run(
            argv, env=env, capture_output=True, text=True, timeout=BUILD_S, check=False
        )
        if done.returncode:
            return f"`{' '.join(argv)}` failed: {done.stderr.strip()[-500:]}"
        (aside / target.name).replace(target)
    return ""


def give_up(message: str) -> None:
    """Skip the test by name, or fail it where every tool must be there."""
    if os.environ.get("EXCLAVE_TEST_TOOLS") == "required":
        pytest.fail(message)
    pytest.skip(message)
