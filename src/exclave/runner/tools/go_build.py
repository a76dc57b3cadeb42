"""Builds a tool from its Go module; the module's sum is pinned, and its go.sum pins the rest."""

import json
import shutil
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from exclave.runner.outcomes import WorkFailed
from exclave.runner.processes.child import Command
from exclave.runner.tools.catalog import Vendor
from exclave.wire.jobs import Reason

Run = Callable[[Command, float], Awaitable[tuple[int, str]]]
"""Run a command with a timeout in seconds; return its exit code and output."""

_DOWNLOAD_S = 300.0
_BUILD_S = 1800.0


async def build_tool(
    vendor: Vendor, version: str, folder: Path, *, env: Mapping[str, str], run: Run
) -> Path:
    """Download the module from the module proxy, verify and build it; return the program."""
    home = folder / "go"
    home.mkdir()
    ours = {
        "GOTOOLCHAIN": "local",
        "GOFLAGS": "-buildvcs=false",
        "CGO_ENABLED": "0",
        "GOPATH": str(home),
        "GOCACHE": str(home / "cache"),
        "GOMODCACHE": str(home / "mod"),
        "GOWORK": "off",
    }
    wanted = f"{vendor.module}@v{version}"
    download = ("go", "mod", "download", "-modcacherw", "-json", wanted)
    code, printed = await run(Command(download, {**env, **ours}, folder), _DOWNLOAD_S)
    module = _read(printed)
    pinned = vendor.module_sums.get(version)
    if code != 0 or "Dir" not in module:
        raise _fail(wanted, str(module.get("Error") or printed))
    if pinned is not None and module.get("Sum") != pinned:
        raise _fail(wanted, f"its sum is {module.get('Sum')}, not {pinned}")
    source = folder / "source"
    shutil.copytree(module["Dir"], source)
    target = folder / vendor.name
    variable = vendor.version_variable
    named = (f"-ldflags=-X {variable}=v{version}",) if variable else ()
    flags = ("-mod=readonly", "-modcacherw", "-trimpath", *named)
    build = ("go", "build", *flags, "-o", str(target), vendor.package)
    code, printed = await run(Command(build, {**env, **ours}, source), _BUILD_S)
    if code != 0:
        raise _fail(wanted, printed[-500:])
    shutil.rmtree(home, ignore_errors=True)
    shutil.rmtree(source, ignore_errors=True)
    return target


def _read(printed: str) -> dict[str, str]:
    try:
        document = json.loads(printed)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _fail(wanted: str, why: str) -> WorkFailed:
    return WorkFailed(Reason.TOOL_MISSING, f"`{wanted}` cannot be built: {why.strip()}")
