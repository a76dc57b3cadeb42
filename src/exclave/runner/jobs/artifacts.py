"""Artifacts on the runner: pulled by digest, checked, unpacked."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

from exclave.base.archives import ArchiveProblem, unpack_archive
from exclave.base.errors import Problem
from exclave.runner.control_plane.execution_api import Uplink
from exclave.runner.jobs.executor import JobRun
from exclave.runner.jobs.workspace import Workspace
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason
from exclave.wire.spec_fields import Artifact


class Puller(Protocol):
    """The part of a registry client that fetches artifacts."""

    async def pull_layer(self, repository: str, digest: str, target: Path) -> Path:
        """Download the layer of an artifact to a file; every digest is verified."""
        ...


OpenPuller = Callable[[Uplink], AbstractAsyncContextManager[Puller]]


async def fetch_artifact(
    open_registry: OpenPuller, job: JobRun, workspace: Workspace, artifact: Artifact, target: Path
) -> None:
    """Pull an artifact and unpack it into a new folder of the workspace."""
    layer = job.folder / f"{target.name}.tar"
    await pull_file(open_registry, job, artifact, layer)
    try:
        await asyncio.to_thread(_unpack, layer, workspace, target)
    except ArchiveProblem as problem:
        message = f"{artifact.repository}@{artifact.digest}: {problem.message}"
        raise WorkFailed(Reason.ARTIFACT_TAMPERED, message) from problem
    finally:
        layer.unlink(missing_ok=True)


async def pull_file(
    open_registry: OpenPuller, job: JobRun, artifact: Artifact, target: Path
) -> None:
    """Pull the layer of an artifact into a file; every digest is verified."""
    try:
        async with open_registry(job.uplink) as registry:
            await registry.pull_layer(artifact.repository, artifact.digest, target)
    except Problem as problem:
        message = f"{artifact.repository}@{artifact.digest} cannot be pulled: {problem.message}"
        raise WorkFailed(Reason.ARTIFACT_UNAVAILABLE, message) from problem


def _unpack(layer: Path, workspace: Workspace, target: Path) -> None:
    with layer.open("rb") as data, workspace.touch():
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
        unpack_archive(data, target)
