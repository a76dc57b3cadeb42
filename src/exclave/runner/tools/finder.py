"""Finds the tool that a job needs: installed, in the tools folder, downloaded, or built."""

import asyncio
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from exclave.base.errors import Problem
from exclave.client.transport import Link
from exclave.runner.outcomes import WorkFailed
from exclave.runner.processes.child import Command
from exclave.runner.tools.catalog import VENDORS, Vendor
from exclave.runner.tools.download import fetch_tool
from exclave.runner.tools.go_build import Run, build_tool
from exclave.runner.tools.versions import Fit, Version, compare_versions, explain_refusal
from exclave.wire.jobs import Reason

_ASK_S = 60.0


@dataclass(frozen=True, slots=True)
class ToolSettings:
    """Settings of where tools may come from."""

    folder: Path
    """The tools folder: `<tool>` or `<tool>/<version>/<tool>`; downloaded tools are stored here."""
    path: str
    download: bool = True
    build: bool = False
    strict: bool = False
    """Accept only exactly the requested version."""
    mirror: str = ""
    """A URL with `<tool>/<version>/<file>`, used instead of the vendors' downloads."""
    checksums: Mapping[str, str] = field(default_factory=dict)
    """The SHA-256 of downloads by `name@version`, used instead of the vendor's list."""
    go_proxy: str = ""
    link: Link = field(default_factory=lambda: Link(""))
    """Connection settings: proxy and certificates."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A suitable program, and a line for the log about it."""

    path: str
    version: Version
    note: str


class ToolFinder:
    """Finds tools, and caches the versions of programs."""

    def __init__(self, settings: ToolSettings, vendors: Mapping[str, Vendor] | None = None) -> None:
        self._settings = settings
        self._vendors = vendors or VENDORS
        self._known: dict[tuple[str, int, int], Version] = {}

    async def find(self, name: str, requested: str, *, env: Mapping[str, str], run: Run) -> Tool:
        """Return a suitable tool; raise `WorkFailed` with a hint if there is none."""
        vendor = self._vendors[name]
        wanted = _read_requested(vendor, requested)
        seen: list[str] = []
        newer: Tool | None = None
        for path in self._list_paths(name):
            version = await self._ask_version(vendor, path, env, run)
            if version is None:
                continue
            if problem := explain_refusal(vendor, version):
                seen.append(f"{version} at {path}, which is not used: {problem}")
                continue
            fit = compare_versions(wanted, version, strict=self._settings.strict)
            seen.append(f"{version} at {path}")
            if fit is Fit.EXACT:
                return Tool(path, version, f"using {name} {version} ({path})")
            if fit is Fit.NEWER_PATCH and (newer is None or version > newer.version):
                note = f"{wanted} was asked for, and a newer patch will do"
                newer = Tool(path, version, f"using {name} {version} ({path}): {note}")
        if newer is not None:
            return newer
        return await self._obtain(name, wanted, seen, env, run)

    async def _obtain(
        self, name: str, wanted: Version | None, seen: list[str], env: Mapping[str, str], run: Run
    ) -> Tool:
        vendor = self._vendors[name]
        version = wanted or Version.read(vendor.default)
        if version is None:
            raise _describe_missing(name, wanted, seen, [])
        target = self._settings.folder / name / str(version) / name
        problems: list[str] = []
        target.parent.parent.mkdir(parents=True, exist_ok=True)
        lock = await asyncio.to_thread(_lock, target.parent.parent / f".{version}.lock")
        try:
            if not target.exists():
                made = await self._make(vendor, str(version), target, problems, env, run)
                if not made:
                    raise _describe_missing(name, wanted, seen, problems)
        finally:
            os.close(lock)
        return Tool(str(target), version, f"using {name} {version} ({target})")

    async def _make(
        self,
        vendor: Vendor,
        version: str,
        target: Path,
        problems: list[str],
        env: Mapping[str, str],
        run: Run,
    ) -> bool:
        settings = self._settings
        if settings.download:
            with _aside(target.parent.parent) as folder:
                try:
                    file = await fetch_tool(
                        vendor,
                        version,
                        folder,
                        link=settings.link,
                        mirror=settings.mirror,
                        checksums=settings.checksums,
                    )
                    return _publish(file, target)
                except (Problem, OSError) as error:
                    problems.append(f"it cannot be downloaded: {error}")
        if settings.build and not vendor.module:
            problems.append("it cannot be built from its Go module")
        elif settings.build and shutil.which("go", path=settings.path) is not None:
            with _aside(target.parent.parent) as folder:
                try:
                    go = {"GOPROXY": settings.go_proxy} if settings.go_proxy else {}
                    file = await build_tool(vendor, version, folder, env={**env, **go}, run=run)
                    return _publish(file, target)
                except WorkFailed as failed:
                    problems.append(failed.message)
        return False

    def _list_paths(self, name: str) -> Iterator[str]:
        """Yield the programs of this name: from the tools folder, newest first, then from PATH."""
        folder = self._settings.folder
        if (folder / name).is_file():
            yield str(folder / name)
        elif (folder / name).is_dir():
            kept = [
                (Version.read(version_folder.name), version_folder / name)
                for version_folder in (folder / name).iterdir()
            ]
            known = [(version, file) for version, file in kept if version and file.is_file()]
            for _, file in sorted(known, reverse=True):
                yield str(file)
        on_path = shutil.which(name, path=self._settings.path)
        if on_path is not None:
            yield on_path

    async def _ask_version(
        self, vendor: Vendor, path: str, env: Mapping[str, str], run: Run
    ) -> Version | None:
        facts = os.stat(path)  # noqa: PTH116 - of the program, links followed
        key = (path, facts.st_mtime_ns, facts.st_size)
        if key not in self._known:
            argv = (path, *vendor.ask_version)
            command = Command(argv, {**env, "CHECKPOINT_DISABLE": "1"}, Path("/"))
            try:
                code, printed = await run(command, _ASK_S)
            except WorkFailed as failed:
                if failed.reason is not Reason.SPAWN_FAILED:
                    raise
                return None  # the job's user cannot execute it
            version = Version.find(printed) if code == 0 else None
            if version is None:
                return None
            self._known[key] = version
        return self._known[key]


def _read_requested(vendor: Vendor, requested: str) -> Version | None:
    if requested in {"", "latest"}:
        return None
    wanted = Version.read(requested)
    if wanted is None:
        form = f"write it like {vendor.default}, or leave it out"
        message = f"`{requested}` is not a version of {vendor.name}: {form}"
        raise WorkFailed(Reason.TOOL_MISSING, message)
    if problem := explain_refusal(vendor, wanted):
        message = f"{vendor.name} {wanted} is not used: {problem}"
        raise WorkFailed(Reason.TOOL_MISSING, message)
    return wanted


def _describe_missing(
    name: str, wanted: Version | None, seen: list[str], problems: list[str]
) -> WorkFailed:
    what = f"{name} {wanted}" if wanted else name
    versions = f"; found: {', '.join(seen)}" if seen else ""
    why = "".join(f"; {problem}" for problem in problems)
    fix = (
        f"Install {what} on the runner's PATH, put it into its tools folder (EXCLAVE_TOOLS),"
        " or let it fetch or build tools (EXCLAVE_TOOLS_DOWNLOAD, EXCLAVE_TOOLS_BUILD)."
    )
    return WorkFailed(Reason.TOOL_MISSING, f"the runner has no {what}{versions}{why}. {fix}")


@contextmanager
def _aside(folder: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=folder, prefix=".new-") as name:
        yield Path(name)


def _publish(file: Path, target: Path) -> bool:
    target.parent.mkdir(exist_ok=True)
    for folder in (target.parent, target.parent.parent, target.parent.parent.parent):
        folder.chmod(folder.stat().st_mode | 0o111)  # jobs may run as other users
    file.chmod(0o755)
    file.replace(target)
    return True


def _lock(file: Path) -> int:
    """Wait until no other process installs this tool."""
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(handle, fcntl.LOCK_EX)
    return handle
