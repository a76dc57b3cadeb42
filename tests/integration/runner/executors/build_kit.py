"""A build executor with its surroundings, for tests of build jobs."""

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from exclave.base.archives import pack_folder
from exclave.base.digests import canonical_json, digest_bytes
from exclave.client.oci.documents import PushedManifest
from exclave.client.oci.repository import OciRepository
from exclave.client.transport import Link
from exclave.runner.builds.charts.downloads import ChartDownloads
from exclave.runner.builds.recipe import BuildTools, Registry
from exclave.runner.control_plane.execution_api import Uplink
from exclave.runner.executors.build import BuildExecutor
from exclave.runner.git.fetch import GitFetcher, GitSettings
from exclave.runner.jobs.environment import ChildSettings
from exclave.runner.jobs.executor import JobRun
from exclave.runner.processes.cell import NO_CELL, Cell, Cells
from exclave.runner.secrets.source_credentials import SourceCredentials
from exclave.runner.secrets.store import FileSecrets
from exclave.runner.tools.finder import ToolFinder, ToolSettings
from exclave.wire.runner import Outcome
from exclave.wire.specs import BuildSpec
from tests.unit.runner.work_kit import CLOCK, ExecutionHarness, make_dispatch

CONFIG = "cfg_" + "0" * 26
KEY = Ed25519PrivateKey.from_private_bytes(b"k" * 32)


@dataclass
class FakeRegistry:
    """Keeps what was pushed."""

    folder: Path
    pushed: list[Mapping[str, Any]] = field(default_factory=list)
    failure: Exception | None = None

    async def push_artifact(
        self, repository: str, *, layer: Path, subject: PushedManifest | None = None, **facts: Any
    ) -> PushedManifest:
        if self.failure is not None:
            raise self.failure
        data = await asyncio.to_thread(layer.read_bytes)
        document = {"layer": digest_bytes(data), "repository": repository, **facts}
        self.pushed.append({**document, "data": data, "subject": subject})
        body = canonical_json({name: str(value) for name, value in document.items()})
        return PushedManifest(digest_bytes(body), len(body))

    def open_repository(self, repository: str) -> OciRepository:
        pytest.fail(f"an image is copied to {repository}, which needs a real registry")


@dataclass
class FakeUplink:
    """Hands out one archive."""

    archive: bytes

    async def get_archive(self, config_id: str, target: Path) -> None:
        assert config_id == CONFIG
        await asyncio.to_thread(target.write_bytes, self.archive)


class Site:
    """An executor with its surroundings."""

    def __init__(
        self,
        folder: Path,
        archive: bytes = b"",
        *,
        registry: Registry | None = None,
        tools: Path | None = None,
        secrets: Mapping[str, str] | None = None,
        keep_free_bytes: int = 0,
        caches_layers: bool = True,
    ) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.fake = FakeRegistry(folder)
        self.registry: Registry = registry or self.fake
        self.archive = archive
        settings = GitSettings(protocols=frozenset({"file"}), allow_private=True)
        children = ChildSettings(path=os.environ["PATH"])
        credentials = SourceCredentials(folder / "source-credentials.json")
        fetcher = GitFetcher(settings, children, credentials)
        finder = ToolFinder(ToolSettings(folder=tools or folder / "tools", path=os.environ["PATH"]))
        charts = ChartDownloads(Link(""), credentials, allow_private=True)
        kit = BuildTools(
            fetcher,
            finder,
            charts,
            secrets=_write_secrets(folder, secrets or {}),
            caches_layers=caches_layers,
        )
        self.executor = BuildExecutor(
            kit, self._open, lambda: KEY, CLOCK, children=children, keep_free_bytes=keep_free_bytes
        )

    @asynccontextmanager
    async def _open(self, uplink: Uplink) -> AsyncIterator[Registry]:
        del uplink
        yield self.registry

    async def build(self, source: Mapping[str, Any], **more: Any) -> Outcome:
        self._prepare()
        return await self._run(NO_CELL, source, **more)

    async def build_in(self, cells: Cells, source: Mapping[str, Any], **more: Any) -> Outcome:
        """Build as an isolated job."""
        self._prepare()
        with cells.hold(self.bench.folder) as cell:
            return await self._run(cell, source, **more)

    def _prepare(self) -> None:
        shutil.rmtree(self.folder / "bench", ignore_errors=True)
        (self.folder / "bench").mkdir()
        self.bench = ExecutionHarness(self.folder / "bench")

    async def _run(self, cell: Cell, source: Mapping[str, Any], **more: Any) -> Outcome:
        spec = BuildSpec.model_validate(
            {
                "build_id": "bui_" + "0" * 26,
                "part": "component:db",
                "type": "terraform_module",
                "repository": "apps/demo",
                "source": source,
                **more,
            }
        )
        uplink = cast("Uplink", FakeUplink(self.archive))
        work = JobRun(make_dispatch(spec), self.bench.folder, uplink, cell)
        return await self.executor.run(work, self.bench.log, self.bench.stop)


def _write_secrets(folder: Path, secrets: Mapping[str, str]) -> FileSecrets:
    file = folder / "secrets.json"
    file.write_text(json.dumps(secrets))
    file.chmod(0o600)
    return FileSecrets(file)


def upload(folder: Path, files: Mapping[str, str]) -> bytes:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    target = folder.parent / "upload.tar"
    with target.open("wb") as out:
        pack_folder(folder, out)
    return target.read_bytes()


def uploaded(archive: bytes, directory: str = "infra/db") -> dict[str, str]:
    return {
        "type": "uploaded",
        "config_id": CONFIG,
        "archive_digest": digest_bytes(archive),
        "directory": directory,
    }
