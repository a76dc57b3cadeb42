"""Checks of the tools that jobs need: found, which version, and whether they can be used."""

import asyncio
import os
import shutil
import tempfile
from pathlib import Path

from exclave.runner.doctor.findings import LIMIT_S, Finding, ok, warn
from exclave.runner.outcomes import WorkFailed
from exclave.runner.processes.isolation import POOL, find_obstacle
from exclave.runner.processes.user_namespaces import open_namespace
from exclave.runner.processes.users import JobUser
from exclave.runner.tools.catalog import VENDORS
from exclave.runner.tools.versions import Version, explain_refusal

_FIXES = {
    "git": "Install git if builds or scripts need it.",
    "terraform": "Install terraform, if components use it; or tofu, with EXCLAVE_TF_TOOL=tofu.",
    "tofu": "Install tofu, or terraform instead, if components use it.",
    "opa": "Install opa if the app has policies.",
    "helm": "Install helm 4 if components are charts.",
    "kubectl": "Install kubectl if actions use it, or if components are built with kustomize.",
    "buildah": "Install buildah if this runner builds images.",
}
_BUILDAH = "buildah"
_NO_BUILDS = "Give the runner a user for which buildah works: root, or one with subordinate ids."


async def check_tools() -> list[Finding]:
    """Check which of the tools that jobs need are installed, and their versions."""
    return list(await asyncio.gather(*(_check_tool(name) for name in _FIXES)))


async def _check_tool(name: str) -> Finding:
    row = f"tool {name}"
    path = shutil.which(name)
    if path is None:
        return warn(row, "not on the PATH", _FIXES[name])
    vendor = VENDORS.get(name)
    arguments = vendor.ask_version if vendor is not None else ("--version",)
    code, printed = await _run(path, *arguments)
    version = Version.find(printed) if code == 0 else None
    if version is None:
        return warn(row, f"{path} does not print its version", "Install it again.")
    if vendor is not None and (problem := explain_refusal(vendor, version)):
        return warn(row, f"{path}, version {version}, is not used: {problem}", _FIXES[name])
    if name == _BUILDAH and (
        problem := await _try_build(path) or await asyncio.to_thread(_try_namespace)
    ):
        return warn(row, f"{path}, version {version}, cannot build: {problem}", _NO_BUILDS)
    return ok(row, f"{path}, version {version}")


async def _try_build(path: str) -> str:
    """Build an image of one file; return what went wrong, or nothing."""
    with tempfile.TemporaryDirectory(prefix="exclave-doctor-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "Dockerfile").write_text("FROM scratch\nCOPY Dockerfile /\n")
        storage = ("--root", f"{name}/root", "--runroot", f"{name}/run", "--storage-driver", "vfs")
        build = ("bud", "--isolation", "chroot", "-f", f"{name}/Dockerfile", name)
        code, printed = await _run(path, *storage, *build)
        return (printed.strip().splitlines() or ["no output"])[-1] if code else ""


def _try_namespace() -> str:
    """Make a user namespace, as isolated builds need one; return what went wrong, or nothing."""
    if find_obstacle():
        return ""  # Jobs are not isolated here, so that builds need none.
    try:
        os.close(open_namespace(JobUser(POOL[0], POOL[0], alone=True)))
    except WorkFailed as failed:
        return failed.message
    return ""


async def _run(path: str, *arguments: str) -> tuple[int, str]:
    """Return exit code and output of a tool; one that does not end in time has failed."""
    try:
        process = await asyncio.create_subprocess_exec(
            path,
            *arguments,
            cwd="/",
            env={
                "PATH": os.environ.get("PATH", os.defpath),
                "HOME": "/",
                "CHECKPOINT_DISABLE": "1",
            },
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
    except OSError as error:
        return 1, str(error)
    try:
        printed, _ = await asyncio.wait_for(process.communicate(), LIMIT_S)
    except TimeoutError:
        process.kill()
        await process.wait()
        return 1, f"no answer within {LIMIT_S:g} s"
    return process.returncode or 0, printed.decode(errors="replace")
