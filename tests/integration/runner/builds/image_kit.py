"""A build runner with buildah and the vendor's registry, for tests of image builds."""

import gzip
import json
import os
import shutil
import struct
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

from exclave.client.oci.client import OciClient
from exclave.client.oci.repository import OciRepository
from exclave.runner.processes.cell import Cells
from exclave.wire.runner import Outcome
from tests.integration.runner.executors.build_kit import Site, upload, uploaded
from tests.support.root_files import copy_programs

ALIEN = b"\x7fELF\x02\x02\x01" + bytes(9) + struct.pack(">HHI", 2, 22, 1) + bytes(100)
"""The beginning of a program for s390x."""


@dataclass
class Yard:
    """A build runner with buildah, and the vendor's registry."""

    folder: Path
    registry: OciClient
    own: OciRepository
    count: int = 0
    credentials: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    policies: list[Mapping[str, str]] = field(default_factory=list)
    tools: Mapping[str, Path] = field(default_factory=dict)
    timeout_s: float = 300.0
    keep_free_bytes: int = 0
    caches_layers: bool = True
    cells: Cells | None = None
    """None: builds run as the user of the tests."""

    async def build(
        self,
        files: Mapping[str, str],
        *,
        programs: bool = False,
        alien: bool = False,
        part: str = "component:db",
        **docker: Any,
    ) -> Outcome:
        """Build from an uploaded folder, with programs of this machine or of another in it."""
        folder = self._make_folder()
        if programs:
            copy_programs(folder / "app" / "programs")
        if alien:
            (folder / "app").mkdir()
            (folder / "app" / "alien").write_bytes(ALIEN)
            (folder / "app" / "alien").chmod(0o755)
        archive = upload(folder / "app", files)
        return await self._run(folder, uploaded(archive, "."), archive, docker, part)

    async def build_source(self, source: Mapping[str, Any], **docker: Any) -> Outcome:
        """Build from a source elsewhere."""
        return await self._run(self._make_folder(), source, b"", docker)

    async def _run(
        self,
        folder: Path,
        source: Mapping[str, Any],
        archive: bytes,
        docker: Mapping[str, Any],
        part: str = "component:db",
    ) -> Outcome:
        tools = folder / "tools"
        tools.mkdir()
        for name, program in self.tools.items():
            shutil.copy(program, tools / name)
        self.site = Site(
            folder / "site",
            archive,
            registry=self.registry,
            tools=tools,
            secrets=self.secrets,
            keep_free_bytes=self.keep_free_bytes,
            caches_layers=self.caches_layers,
        )
        if self.credentials:
            file = folder / "site" / "source-credentials.json"
            file.write_text(json.dumps({"credentials": [self.credentials]}))
            file.chmod(0o600)
        options = {"dockerfile": "Dockerfile", **docker}
        more = {
            "type": "image_build",
            "part": part,
            "docker": options,
            "policies": self.policies,
            "timeout_s": self.timeout_s,
        }
        if self.cells is None:
            return await self.site.build(source, **more)
        return await self.site.build_in(self.cells, source, **more)

    def _make_folder(self) -> Path:
        self.count += 1
        folder = self.folder / f"build-{self.count}"
        folder.mkdir()
        return folder

    async def read_config(self, digest: str) -> dict[str, Any]:
        """Return the config of an image."""
        manifest = await self._read_manifest(digest)
        found: dict[str, Any] = json.loads(await self.read_blob(manifest["config"]["digest"]))
        return found

    async def list_platforms(self, digest: str) -> list[str]:
        """Return the platforms of an index."""
        manifests = (await self._read_manifest(digest))["manifests"]
        platforms = [one["platform"] for one in manifests]
        return [f"{one['os']}/{one['architecture']}" for one in platforms]

    async def list_files(self, digest: str) -> set[str]:
        """Return the names of all files of an image."""
        return {
            entry.name
            for layer in await self.read_layers(digest)
            for entry in tarfile.open(fileobj=BytesIO(layer))
            if entry.isfile()
        }

    async def read_layers(self, digest: str) -> list[bytes]:
        """Return the layers of an image, unpacked."""
        layers = (await self._read_manifest(digest))["layers"]
        return [gzip.decompress(await self.read_blob(layer["digest"])) for layer in layers]

    async def read_blob(self, digest: str) -> bytes:
        """Return a blob of the vendor's registry."""
        calls = self.own.calls
        path = calls.path("apps/demo", f"blobs/{digest}")
        return (await calls.send("GET", path, "apps/demo")).content

    async def list_referrer_blobs(self, digest: str) -> list[str]:
        """Return the digests of all blobs of what refers to an image."""
        manifests = [
            await self._read_manifest(referrer.digest)
            for referrer in await self.own.list_referrers(digest)
        ]
        return [layer["digest"] for manifest in manifests for layer in manifest["layers"]]

    async def _read_manifest(self, digest: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((await self.own.fetch_manifest(digest)).data)
        return found

    def make_disk_full_later(self) -> None:
        """Ask for more free space than will be left when the source has been unpacked."""
        disk = os.statvfs(self.folder)
        self.keep_free_bytes = disk.f_bavail * disk.f_frsize - (1 << 20)
