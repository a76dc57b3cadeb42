"""What a recipe is given and what it returns: one recipe builds the artifacts of one type."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from exclave.base.ids import Randomness, SystemRandomness
from exclave.base.json_values import JsonObject
from exclave.client.oci.client import ArtifactConfig
from exclave.client.oci.documents import PushedManifest
from exclave.client.oci.repository import OciRepository
from exclave.runner.builds.charts.downloads import ChartDownloads
from exclave.runner.control_plane.execution_api import Uplink
from exclave.runner.git.fetch import GitFetcher
from exclave.runner.images.cloud_logins import CloudLogins
from exclave.runner.jobs.context import JobContext
from exclave.runner.logs.spool import LogWriter
from exclave.runner.secrets.store import FileSecrets, SecretStore
from exclave.runner.tools.finder import Tool, ToolFinder
from exclave.runner.tools.job_tools import find_job_tool
from exclave.wire.plans import PolicyFinding
from exclave.wire.specs import BuildSpec


class Registry(Protocol):
    """The org's registry, which artifacts are pushed to."""

    async def push_artifact(
        self,
        repository: str,
        *,
        artifact_type: str,
        layer: Path,
        layer_type: str,
        annotations: Mapping[str, str],
        subject: PushedManifest | None = None,
        config: ArtifactConfig = ...,
    ) -> PushedManifest:
        """Push one file as an artifact."""
        ...

    def open_repository(self, repository: str) -> OciRepository:
        """Return one repository, to copy images into it."""
        ...


OpenRegistry = Callable[[Uplink], AbstractAsyncContextManager[Registry]]


@dataclass(slots=True)
class Progress:
    """The current step of a build, which is named in error messages."""

    log: LogWriter
    step: str = "prepare"

    def begin(self, step: str, context: JobContext) -> None:
        """Enter a step; raise if a stop was requested."""
        context.check()
        self.step = step
        self.log.system(f"▸ step {step}")


@dataclass(frozen=True, slots=True)
class BuildTools:
    """What all recipes share: fetchers, tools, and the way to the outside."""

    fetcher: GitFetcher
    finder: ToolFinder
    charts: ChartDownloads
    clouds: CloudLogins = field(default_factory=CloudLogins)
    secrets: SecretStore = field(default_factory=lambda: FileSecrets(None))
    """What Dockerfiles may mount."""
    caches_layers: bool = True
    """Whether layers of images are kept in the org's registry for the next build."""
    randomness: Randomness = field(default_factory=SystemRandomness)


@dataclass(frozen=True, slots=True)
class BuildWork:
    """One build job, as its recipe sees it."""

    context: JobContext
    spec: BuildSpec
    registry: Registry
    tools: BuildTools
    progress: Progress

    def begin(self, step: str) -> None:
        """Enter a step of the build; raise if a stop was requested."""
        self.progress.begin(step, self.context)

    async def find_tool(self, name: str, version: str = "") -> Tool:
        """Return a program that the build needs, and write to the log which one is used."""
        return await find_job_tool(self.tools.finder, self.context, name, version)


@dataclass(frozen=True, slots=True)
class BuiltArtifact:
    """An artifact that was pushed, and what its provenance says about it."""

    pushed: PushedManifest
    layer: str
    """The digest of the content; empty if the manifest is all that is known of it."""
    size: int
    files: int = 0
    commit: str = ""
    materials: tuple[JsonObject, ...] = ()
    """What was fetched beside the source, as resource descriptors of the provenance."""
    findings: tuple[PolicyFinding, ...] = ()
    """What policies say about it; none of them denies it."""


Recipe = Callable[[BuildWork], Awaitable[BuiltArtifact]]
"""Fetch, check, make and push the artifact of one build job."""
